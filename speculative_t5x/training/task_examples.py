# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the examples of a seqio task into memory."""

from collections.abc import Mapping
import dataclasses

from speculative_t5x.networks import network as network_lib
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.training import batches


def end_of_sequence(name: str, split: str) -> int:
  """Return the id that ends the sequences of a seqio task with such a split."""
  return examples_lib.vocabulary_of(examples_lib.find_task(name, split)).eos_id


@dataclasses.dataclass(frozen=True)
class References:
  """The references of a task, as examples to train on."""

  # The name of a registered seqio task with the features `inputs` and
  # `targets`.
  mixture_or_task_name: str
  split: str  # the name of one of its splits
  # Maximum tokens of 'inputs' and 'targets'; longer sequences are truncated.
  # Values above the data's lengths cost no time.
  task_feature_lengths: Mapping[str, int]

  def read(self, network: network_lib.Network) -> batches.TokenPairs:
    """Tokenize one epoch of the split, for a network that reads it."""
    name, split = self.mixture_or_task_name, self.split
    read = examples_lib.read(
        examples_lib.find_task(name, split), split, self.task_feature_lengths
    )
    return batches.pad(
        *zip(*((cut['inputs'], cut['targets']) for _, cut in read)),
        network,
        f'Split {split!r} of {name!r}',
        self.task_feature_lengths,
    )
