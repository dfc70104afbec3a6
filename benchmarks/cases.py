# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weights and inputs that several systems decode.

Legend: inputs, length (of inputs and outputs).
"""

import argparse
from collections.abc import Sequence
import dataclasses
import pathlib

import numpy as np

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.tasks import multi30k

LENGTH = 64  # tokens, of inputs and outputs

Tokens = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Network:
  """A network's config, and its parameters under T5X's names."""

  config: t5.T5Config
  params: contracts.Params


@dataclasses.dataclass(frozen=True)
class Case:
  """A case that all systems decode.

  Attributes:
    target: The target model.
    assistant: The draft model of systems in which it needs an encoder; None
      where it has none.
    inputs: [inputs, length] int32, padded at the end.
  """

  target: Network
  assistant: Network | None
  inputs: np.ndarray


def add_options(parser: argparse.ArgumentParser) -> None:
  """Add the options that a case is read by, but the number of inputs."""
  for name in ('--multi30k', '--target', '--draft'):
    parser.add_argument(name, type=pathlib.Path, required=True)
  parser.add_argument('--output', type=pathlib.Path)


def read(options: argparse.Namespace) -> Case:
  """Read checkpoints, and the first inputs of Multi30k's validation split."""
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
  return Case(target, assistant, inputs)


def _read_checkpoint(path: pathlib.Path) -> Network:
  opened = checkpoints.open(path)
  config = opened.network()
  params = opened.restore_params(models_lib.abstract_params(config))
  return Network(config, params)


def until_end(ids: Sequence[int]) -> Tokens:
  """Return the token ids before EOS; all if there is no EOS."""
  ids = [int(i) for i in ids]
  if t5.SPECIAL_IDS.end in ids:
    ids = ids[: ids.index(t5.SPECIAL_IDS.end)]
  return tuple(ids)
