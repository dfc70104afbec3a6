# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The options, which each system's process gets too, and the cases: weights
and inputs to decode.

Legend: inputs, length (of inputs and outputs), embed, vocab.
"""

import argparse
from collections.abc import Sequence
import dataclasses
import json
import math
import pathlib

import jax
import numpy as np

from benchmarks import running
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import random_models
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import contracts
from speculative_t5x.tasks import multi30k

LENGTH = 64  # tokens of the oracle's inputs and outputs
_NUM_RANDOM_INPUTS = 8
_NUM_TEXT_INPUTS = 64


def parse(
    given: Sequence[str] | None, description: str | None = None
) -> argparse.Namespace:
  """Parse the options and set the default number of inputs."""
  parser = running.parser('side_by_side', description)
  case = parser.add_mutually_exclusive_group(required=True)
  case.add_argument('--size', choices=t5_published.SIZES)
  case.add_argument('--oracle', type=pathlib.Path, metavar='FOLDER')
  case.add_argument('--multi30k', type=pathlib.Path, metavar='FOLDER')
  group = parser.add_argument_group('for --multi30k')
  for name in ('--target', '--draft', '--assistant'):
    group.add_argument(name, type=pathlib.Path, metavar='CHECKPOINT')
  parser.add_argument('--gamma', type=running.positive, default=4)
  parser.add_argument(
      '--inputs', type=running.positive, help='default: 64, or 8'
  )
  parser.add_argument('--repeats', type=running.positive, default=5)
  options = parser.parse_args(given)
  if options.multi30k and not (options.target and options.draft):
    parser.error('--multi30k needs --target and --draft')
  models = options.target, options.draft, options.assistant
  if any(models) and not options.multi30k:
    parser.error('--target, --draft and --assistant need --multi30k')
  if options.inputs is None:
    options.inputs = _NUM_RANDOM_INPUTS if options.size else _NUM_TEXT_INPUTS
  return options


@dataclasses.dataclass(frozen=True)
class Network:
  """A network's config, and its parameters under T5X's names."""

  config: t5.T5Config
  params: contracts.Params


@dataclasses.dataclass(frozen=True)
class Case:
  """A case that all systems decode.

  Attributes:
    name: Name of the case.
    target: The target model.
    draft: The draft model, which shares the target's encoder if it has none;
      None for plain decoding only.
    assistant: The draft model of systems in which it needs an encoder.
    gamma: Draft tokens per block.
    inputs: [inputs, length] int32, padded at the end.
  """

  name: str
  target: Network
  draft: Network | None
  assistant: Network | None
  gamma: int
  inputs: np.ndarray


def read(options: argparse.Namespace) -> Case:
  """Return what all systems decode."""
  if options.size:
    return make_random(options.size, options.inputs, options.gamma)
  if options.oracle:
    return read_oracle(options.oracle, options.inputs, options.gamma)
  return read_multi30k(options)


def read_oracle(folder: pathlib.Path, num_inputs: int, gamma: int) -> Case:
  """Read the oracle's pair and the first of its inputs.

  Raises:
    ValueError: if the oracle has fewer than `num_inputs` inputs.
  """
  with np.load(folder / 'target/oracle.npz') as arrays:
    inputs = arrays['encoder_input_tokens']
  if num_inputs > len(inputs):
    raise ValueError(
        f'{folder} has {len(inputs)} inputs, got --inputs={num_inputs}. Give at'
        ' most that number.'
    )
  target, draft = (_read_network(folder / name) for name in ('target', 'draft'))
  return Case('oracle', target, draft, draft, gamma, inputs[:num_inputs])


def _read_network(folder: pathlib.Path) -> Network:
  sizes = json.loads((folder / 'oracle.json').read_text())['config']
  config = t5.T5Config(**sizes)
  params = checkpoints.open(folder / 't5x_orbax').restore_params(
      models_lib.abstract_params(config)
  )
  return Network(config, params)


def read_multi30k(options: argparse.Namespace) -> Case:
  """Read checkpoints, and the first inputs of the validation split."""
  folder = options.multi30k
  vocabulary = vocabularies.load(folder / multi30k.VOCABULARY_FILE)
  pairs = multi30k.read_pairs(folder, 'validation')[: options.inputs]
  form = inputs_form.InputsForm(end=(vocabulary.eos_id,))
  inputs = np.zeros((len(pairs), LENGTH), np.int32)
  for row, (english, _) in zip(inputs, pairs, strict=True):
    tokens, _ = form.cut(vocabulary.encode(english), LENGTH)
    row[: len(tokens)] = tokens
  target, draft = map(_read_checkpoint, (options.target, options.draft))
  assistant = draft if draft.config.num_encoder_layers else None
  if options.assistant is not None:
    assistant = _read_checkpoint(options.assistant)
  return Case('multi30k', target, draft, assistant, options.gamma, inputs)


def _read_checkpoint(path: pathlib.Path) -> Network:
  opened = checkpoints.open(path)
  config = opened.network()
  params = opened.restore_params(models_lib.abstract_params(config))
  return Network(config, params)


def make_random(size: str, num_inputs: int, gamma: int) -> Case:
  """Make a case without a draft whose target has random weights and no EOS."""
  config = t5_published.make_config(size)
  params = with_small_queries(
      random_models.random_params(config), config.head_dim
  )
  params['decoder']['logits_dense']['kernel'] = without_end(
      params['decoder']['logits_dense']['kernel']
  )
  rng = np.random.default_rng(0)
  # Ids below 3 are special; those from 32,000 on are padding of the vocabulary.
  inputs = rng.integers(3, 32_000, (num_inputs, LENGTH), np.int32)
  return Case(size, Network(config, params), None, None, gamma, inputs)


def with_small_queries(
    params: contracts.Params, head_dim: int
) -> contracts.Params:
  """Return the parameters with query kernels scaled by 1/sqrt(head_dim).

  T5 applies this factor in the initialisation. Without it, attention with
  random weights is almost an argmax, and rounding changes the output.
  """

  def scale(path, x):
    is_query = any(entry.key == 'query' for entry in path)
    return x / math.sqrt(head_dim) if is_query else x

  return jax.tree_util.tree_map_with_path(scale, params)


def without_end(kernel: jax.Array) -> jax.Array:
  """Return an output head [embed, vocab] that never selects padding or EOS.

  Their logits are 0, while the largest of the many random logits is positive.
  Weights forbid the ids in every system, at no cost.
  """
  ids = np.array([t5.SPECIAL_IDS.padding, t5.SPECIAL_IDS.end])
  return kernel.at[:, ids].set(0)
