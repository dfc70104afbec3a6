# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small networks of all kinds, with the logits of outputs by the oracle."""

from collections.abc import Callable
import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from speculative_t5x import networks
from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from tests import reference_network
from tests import tiny
from tests import tiny_decoders
from tests import tiny_encoder_decoders

_T5 = tiny.config(num_encoder_layers=1, num_decoder_layers=2)
NETWORKS: dict[str, Any] = {
    't5': _T5,
    'bias per layer': dataclasses.replace(_T5, bias_per_layer=True),
    **tiny_decoders.CONFIGS,
    **tiny_encoder_decoders.CONFIGS,
    **tiny_decoders.CONFIGS_OF_T5GEMMA,
}
# Other parts of these.
VARIANTS: dict[str, Any] = {
    't5 1.0': dataclasses.replace(
        _T5, mlp_activations=('relu',), logits_via_embedding=True
    ),
    'prefix': tiny_decoders.PREFIX,
    'partly rotated': dataclasses.replace(
        tiny_decoders.CONFIGS['llama'], rotated_dim=4, logits_bias=True
    ),
}


class Case(NamedTuple):
  """A network, inputs of unequal lengths, and what it says of an output.

  Attributes:
    model: The network as a model.
    params: Its parameters.
    inputs: [examples, any], NO_TOKEN where there is none.
    alone: Takes the number of an example and an output; returns the logits of
      the token after it, [vocab], computed without a cache.
  """

  model: network_lib.NetworkModel
  params: Any
  inputs: np.ndarray
  alone: Callable[[int, list[int]], np.ndarray]


def network(name: str) -> Any:
  return (NETWORKS | VARIANTS)[name]


def params(name: str) -> Any:
  """Return parameters as they are stored."""
  config = network(name)
  is_t5 = isinstance(config, networks.T5Config)
  return tiny.params(config) if is_t5 else tiny_decoders.params(config)


@functools.cache
def model(name: str) -> models.Model:
  """Return one ready to decode."""
  ids = tiny_encoder_decoders.SPECIAL_IDS.get(name)
  return models.make_model(network(name), params(name), special_ids=ids)


def logits(name: str, inputs: np.ndarray, output: list[int]) -> np.ndarray:
  """Return the logits of each token of an output and of one more."""
  tokens = inputs[inputs >= 0].tolist()
  return reference_network.logits(network(name), params(name), tokens, output)


def inputs_of(name: str, lengths: tuple[int, ...]) -> np.ndarray:
  """Return inputs of lengths, in which id 0 is a token."""
  inputs = tiny_decoders.prompts(lengths)
  return np.minimum(inputs, network(name).vocab_size - 1)


def case(name: str) -> Case:
  """Return one whose inputs are shorter and longer than a window."""
  inputs, made = inputs_of(name, (3, 11)), model(name)
  decoder = network_lib.NetworkModel(made.config, made.special_ids)
  return Case(
      decoder,
      made.params,
      inputs,
      lambda example, output: logits(name, inputs[example], output)[-1],
  )


CASES = {name: functools.partial(case, name) for name in NETWORKS}
