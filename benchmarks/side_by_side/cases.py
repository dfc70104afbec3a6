# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is decoded, and by which weights.

Legend: inputs, length (of inputs and outputs), embed, vocab.
"""

import dataclasses
import json
import math
import pathlib

import jax
import numpy as np

from speculative_t5x import checkpoints
from speculative_t5x import dialled
from speculative_t5x import loading
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x.networks import t5

LENGTH = 64  # of the oracle's inputs and outputs


@dataclasses.dataclass(frozen=True)
class Network:
  """Sizes of a network, and its parameters under T5X's names."""

  config: t5.T5Config
  params: seam.Params


@dataclasses.dataclass(frozen=True)
class Case:
  """What all systems decode.

  Attributes:
    name: of the case.
    target: decodes.
    draft: guesses for it; None if there is none.
    gamma: guesses a block.
    inputs: [inputs, length] int32, padding behind.
  """

  name: str
  target: Network
  draft: Network | None
  gamma: int
  inputs: np.ndarray


def read_oracle(folder: pathlib.Path, num_inputs: int, gamma: int) -> Case:
  """The oracle's pair and the first of its inputs.

  Raises:
    ValueError: if it has fewer inputs than that.
  """
  with np.load(folder / 'target/oracle.npz') as arrays:
    inputs = arrays['encoder_input_tokens']
  if num_inputs > len(inputs):
    raise ValueError(
        f'{folder} has {len(inputs)} inputs, got --inputs={num_inputs}.'
    )
  target, draft = (_read_network(folder / name) for name in ('target', 'draft'))
  return Case('oracle', target, draft, gamma, inputs[:num_inputs])


def _read_network(folder: pathlib.Path) -> Network:
  sizes = json.loads((folder / 'oracle.json').read_text())['config']
  config = t5.T5Config(**sizes)
  params = checkpoints.restore_params(
      folder / 't5x_orbax', loading.abstract_params(config)
  )
  return Network(config, params)


def make_random(size: str, num_inputs: int, gamma: int) -> Case:
  """A target of random weights that never ends, without a draft."""
  config = dialled.make_config(size)
  params = with_small_queries(dialled.random_params(config), config.head_dim)
  params['decoder']['logits_dense']['kernel'] = without_end(
      params['decoder']['logits_dense']['kernel']
  )
  rng = np.random.default_rng(0)
  # Ids from 3 on mean nothing special; those past 32,000 pad the vocabulary.
  inputs = rng.integers(3, 32_000, (num_inputs, LENGTH), np.int32)
  return Case(size, Network(config, params), None, gamma, inputs)


def with_small_queries(params: seam.Params, head_dim: int) -> seam.Params:
  """The parameters, queries scaled as T5 initializes them.

  It leaves 1/sqrt(head_dim) to the query's kernel. Without it attention is all
  but an argmax, which makes a float's rounding into another text.
  """

  def scale(path, x):
    is_query = any(entry.key == 'query' for entry in path)
    return x / math.sqrt(head_dim) if is_query else x

  return jax.tree_util.tree_map_with_path(scale, params)


def without_end(kernel: jax.Array) -> jax.Array:
  """An output head, [embed, vocab], by which no output ends.

  The logits of padding and of the end of sequence are 0, and the largest of so
  many others of either sign is not. Forbidden by the weights, they are so in
  every system, at no cost in any.
  """
  ids = np.array([loading.PAD_ID, speculation.EOS_ID])
  return kernel.at[:, ids].set(0)
