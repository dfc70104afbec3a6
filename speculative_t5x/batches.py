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
import numpy as np

Array = np.ndarray | jax.Array


@struct.dataclass
class Examples:
  """Pairs of token sequences, padded at their ends with 0.

  Attributes:
    inputs: [num_examples, inputs_length] int32.
    targets: [num_examples, targets_length] int32.
  """

  inputs: Array
  targets: Array

  @property
  def num_examples(self) -> int:
    return self.targets.shape[0]

  def take(self, indices: Array) -> 'Examples':
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


def shift_right(targets: jax.Array) -> jax.Array:
  """The decoder's inputs: a 0, then the targets without their last column."""
  start = jnp.zeros_like(targets[..., :1])
  return jnp.concatenate([start, targets[..., :-1]], axis=-1)


@dataclasses.dataclass(frozen=True)
class Shuffle:
  """An endless order of batches, shuffled anew each epoch.

  An epoch has only full batches: the examples that are left over are others
  each time.

  Attributes:
    num_examples: of the training set, at least `batch_size`.
    batch_size: examples a batch.
    seed: of the order.
  """

  num_examples: int
  batch_size: int
  seed: int

  @property
  def batches_per_epoch(self) -> int:
    return self.num_examples // self.batch_size

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
    order = np.random.default_rng((self.seed, epoch)).permutation(
        self.num_examples
    )
    num_used = self.batches_per_epoch * self.batch_size
    return order[:num_used].reshape(-1, self.batch_size).astype(np.int32)


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
