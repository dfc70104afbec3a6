# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the examples of a seqio task into memory."""

from collections.abc import Mapping
import dataclasses

from speculative_t5x.decoder import batching
from speculative_t5x.networks import t5
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.training import batches

FEATURES = ('inputs', 'targets')


def read(
    name: str,
    split: str,
    task_feature_lengths: Mapping[str, int],
    config: t5.T5Config,
) -> batches.Examples:
  """Tokenizes one epoch of a split.

  Args:
    name: of a registered seqio task with the features `inputs` and `targets`.
    split: of it.
    task_feature_lengths: maximum tokens of 'inputs' and 'targets'; longer
      sequences are truncated. Values above the data's lengths cost no time.
    config: of the network.
  Raises:
    ValueError: if there is no such task, split or example, or if an id is not
      in the network's range.
  """
  inputs_lib.check_lengths(task_feature_lengths)
  if set(task_feature_lengths) != set(FEATURES):
    raise ValueError(
        f'task_feature_lengths must have exactly the keys {FEATURES}. Got'
        f' {dict(task_feature_lengths)}.'
    )
  task = examples_lib.find_task(name, split)
  rows = [
      [cut[feature] for feature in FEATURES]
      for _, cut in examples_lib.read(task, split, task_feature_lengths)
  ]
  if not rows:
    raise ValueError(
        f'Split {split!r} of {name!r} has no examples. Pass another split.'
    )
  inputs, targets = zip(*rows, strict=True)
  examples = batches.Examples(
      batching.pad(inputs, task_feature_lengths['inputs']),
      batching.pad(targets, task_feature_lengths['targets']),
  )
  batches.check_tokens(examples, config, f'Split {split!r} of {name!r}')
  return batches.trim_padding(examples)


def end_of_sequence(name: str, split: str) -> int:
  """Returns the id that ends the sequences of a task.

  Args:
    name: see `read`.
    split: see `read`.
  Raises:
    ValueError: if there is no such task or split, or if the vocabulary cannot
      be read.
  """
  return examples_lib.vocabulary_of(examples_lib.find_task(name, split)).eos_id


@dataclasses.dataclass(frozen=True)
class References:
  """The references of a task, as examples to train on.

  Attributes:
    mixture_or_task_name: see `read`.
    split: see `read`.
    task_feature_lengths: see `read`.
  """

  mixture_or_task_name: str
  split: str
  task_feature_lengths: Mapping[str, int]

  def read(self, config: t5.T5Config) -> batches.Examples:
    """Returns the examples, for a network."""
    return read(
        self.mixture_or_task_name,
        self.split,
        self.task_feature_lengths,
        config,
    )
