# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token sequences in memory, and which of them make up batch k.

All examples of a training set are padded once to one shape and stay in memory,
or on the device. A batch is then a row of indices, so a step costs the host
next to nothing, and batch k depends on the seed and on k alone: a training
that resumes at step k sees what an uninterrupted one would have seen.

Legend: num_examples, batch, inputs_length, targets_length.
"""

from collections.abc import Sequence
import dataclasses

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
import numpy as np

Tokens = np.ndarray | jax.Array


@struct.dataclass
class Examples:
  """Pairs of token sequences, padded at their ends with 0.

  Attributes:
    inputs: [num_examples, inputs_length] int32.
    targets: [num_examples, targets_length] int32.
  """

  inputs: Tokens
  targets: Tokens

  @property
  def num_examples(self) -> int:
    return self.targets.shape[0]

  @property
  def lengths(self) -> np.ndarray:
    """[num_examples] int32, tokens of the longer side of each pair."""
    count = lambda tokens: (tokens > 0).sum(axis=-1, dtype=np.int32)
    return np.maximum(count(self.inputs), count(self.targets))

  def cut(self, length: int) -> 'Examples':
    """The first columns of both sides."""
    return Examples(self.inputs[..., :length], self.targets[..., :length])

  def take(self, indices: Tokens) -> 'Examples':
    """The examples of the given indices, int32 of any shape."""
    return Examples(self.inputs[indices], self.targets[indices])


def pad_sequences(sequences: Sequence[np.ndarray], length: int) -> np.ndarray:
  """Stacks token sequences, cut to `length` and padded to it with 0.

  Args:
    sequences: integer arrays of one dimension.
    length: of every row of the result.
  Returns:
    [len(sequences), length] int32.
  """
  padded = np.zeros((len(sequences), length), np.int32)
  for row, sequence in zip(padded, sequences, strict=True):
    row[: len(sequence)] = sequence[:length]
  return padded


def trim_padding(examples: Examples, multiple: int = 8) -> Examples:
  """Cuts the columns in which every example is padded.

  Args:
    examples: as numpy arrays.
    multiple: the remaining lengths are rounded up to one of it, because odd
      sizes are slow on accelerators.
  """
  return jax.tree.map(
      lambda tokens: tokens[:, : _used_length(tokens, multiple)], examples
  )


def _used_length(tokens: np.ndarray, multiple: int) -> int:
  used = np.flatnonzero(tokens.any(axis=0))
  longest = int(used[-1]) + 1 if used.size else 1
  return min(-(-longest // multiple) * multiple, tokens.shape[1])


def shift_right(
    targets: Int[Array, '*batch length'],
) -> Int[Array, '*batch length']:
  """The decoder's inputs: a 0, then the targets without their last column."""
  start = jnp.zeros_like(targets[..., :1])
  return jnp.concatenate([start, targets[..., :-1]], axis=-1)


@dataclasses.dataclass(frozen=True)
class Shuffle:
  """An endless order of batches of like length, shuffled anew each epoch.

  Batches come in groups, one a call of the device. A group's examples are of
  like length, so that the call computes little padding; which examples share a
  group, and the order of groups, differ from epoch to epoch. An epoch has only
  full groups: the examples that are left over are others each time.

  Attributes:
    lengths: [num_examples] int32, tokens of each example.
    batch_size: examples a batch.
    group_size: batches a group.
    seed: of the order.
  """

  lengths: np.ndarray
  batch_size: int
  group_size: int
  seed: int

  @property
  def batches_per_epoch(self) -> int:
    examples_per_group = self.batch_size * self.group_size
    return len(self.lengths) // examples_per_group * self.group_size

  def indices(self, first: int, last: int) -> np.ndarray:
    """Which examples are in the batches from `first` up to, without, `last`.

    Returns:
      [last - first, batch_size] int32 in [0, num_examples).
    """
    per_epoch = self.batches_per_epoch
    epochs = range(first // per_epoch, -(-last // per_epoch))
    batches = np.concatenate([self._epoch(epoch) for epoch in epochs])
    start = first - epochs.start * per_epoch
    return batches[start : start + last - first]

  def _epoch(self, epoch: int) -> np.ndarray:
    rng = np.random.default_rng((self.seed, epoch))
    order = rng.permutation(len(self.lengths))
    order = order[: self.batches_per_epoch * self.batch_size]
    # A stable sort leaves examples of one length in their shuffled order.
    order = order[np.argsort(self.lengths[order], kind='stable')]
    groups = order.reshape(-1, self.group_size * self.batch_size)
    groups = rng.permuted(rng.permutation(groups), axis=1)
    return groups.reshape(-1, self.batch_size).astype(np.int32)


def in_order(examples: Examples, batch_size: int) -> Examples:
  """All examples as full batches in their order, for evaluation.

  The last batch is filled with examples of nothing but padding, which weigh
  nothing.

  Args:
    examples: as numpy arrays.
    batch_size: examples a batch.
  Returns:
    Examples whose arrays are [num_batches, batch_size, length].
  """
  num_batches = -(-examples.num_examples // batch_size)
  missing = num_batches * batch_size - examples.num_examples
  return jax.tree.map(
      lambda tokens: np.pad(tokens, ((0, missing), (0, 0))).reshape(
          num_batches, batch_size, -1
      ),
      examples,
  )
