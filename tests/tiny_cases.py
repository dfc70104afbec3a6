# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small networks of several kinds, with the logits of an output decoded alone.
"""

from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import numpy as np

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from tests import reference_decoder
from tests import reference_encoder_decoder
from tests import tiny
from tests import tiny_decoders
from tests import tiny_encoder_decoders


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


def _case(made: models.Model, inputs, alone) -> Case:
  model = network_lib.NetworkModel(made.config, made.special_ids)
  return Case(model, made.params, inputs, alone)


def t5_case(**sizes) -> Case:
  config = tiny.config(num_encoder_layers=1, num_decoder_layers=2, **sizes)
  params, inputs = tiny.params(config), tiny.encoder_tokens(2, 9)

  def alone(example, output):
    outputs = np.zeros((1, 12), np.int32)  # of one length, compiled once
    outputs[0, : len(output)] = output
    own = inputs[example : example + 1]
    return tiny.teacher_forced(config, params, own, outputs)[0, len(output)]

  return _case(tiny.model(config), inputs, alone)


def decoder_case(name: str) -> Case:
  """Return one whose prompts are shorter and longer than a window."""
  config, inputs = tiny_decoders.CONFIGS[name], tiny_decoders.prompts((3, 11))
  start = [] if config.start_token is None else [config.start_token]

  def alone(example, output):
    prompt = [x for x in inputs[example].tolist() if x >= 0]
    params = tiny_decoders.params(config)
    text = [*start, *prompt, *output]
    return reference_decoder.logits(config, params, text)[-1]

  return _case(tiny_decoders.model(name), inputs, alone)


def bart_case(name: str) -> Case:
  """Return one whose decoder begins with a prompt."""
  config = tiny_encoder_decoders.CONFIGS[name]
  params, inputs = tiny_decoders.params(config), tiny_decoders.prompts((3, 11))

  def alone(example, output):
    own = [x for x in inputs[example].tolist() if x >= 0]
    return reference_encoder_decoder.logits(config, params, own, output)[-1]

  return _case(tiny_encoder_decoders.model(name), inputs, alone)


def t5gemma_case(name: str) -> Case:
  config = tiny_decoders.CONFIGS_OF_T5GEMMA[name]
  params, inputs = tiny_decoders.params(config), tiny_decoders.prompts((3, 11))

  @functools.cache
  def features(example):
    own = [x for x in inputs[example].tolist() if x >= 0]
    return reference_decoder.encode(config.encoder, params, own)

  def alone(example, output):
    fed = [config.special_ids.start, *output]
    read = features(example)
    return reference_decoder.logits(config, params, fed, read)[-1]

  return _case(models.make_model(config, params), inputs, alone)


CASES = {
    't5': t5_case,
    'bias per layer': functools.partial(t5_case, bias_per_layer=True),
    **{
        name: functools.partial(decoder_case, name)
        for name in tiny_decoders.CONFIGS
    },
    **{
        name: functools.partial(bart_case, name) for name in ('bart', 'nllb')
    },
    **{
        name: functools.partial(t5gemma_case, name)
        for name in tiny_decoders.CONFIGS_OF_T5GEMMA
    },
}
