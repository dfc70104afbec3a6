# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token sequences in memory, and the choice of the examples of each batch.

All examples of a training set are padded once to one shape and stay in memory,
or on the device. A batch is then a row of indices, which costs the host little
time per step. Batch k depends only on the seed and on k, so a training run
resumed at step k sees the same batches as an uninterrupted one.

Legend: num_examples, batch, inputs_length, targets_length.
"""

from collections.abc import Sequence
import dataclasses

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int
import numpy as np

from speculative_t5x.networks import t5

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
    """[num_examples] int32, tokens of the longer sequence of each pair."""
    return np.maximum(_lengths(self.inputs), _lengths(self.targets))

  def cut(self, length: int) -> 'Examples':
    """Returns the first `length` columns of inputs and targets."""
    return Examples(self.inputs[..., :length], self.targets[..., :length])

  def take(self, indices: Tokens) -> 'Examples':
    """Returns the examples at the given indices, int32 of any shape."""
    return Examples(self.inputs[indices], self.targets[indices])


def _lengths(tokens: np.ndarray) -> np.ndarray:
  """Returns the place behind the last token of each row, [rows] int32."""
  is_token = tokens > 0
  behind_last = tokens.shape[1] - np.argmax(is_token[:, ::-1], axis=1)
  return np.where(is_token.any(axis=1), behind_last, 0).astype(np.int32)


def check_tokens(examples: Examples, config: t5.T5Config, origin: str) -> None:
  """Checks that the tokens are of a network's vocabulary.

  Raises:
    ValueError: naming where they come from, and the first that is not.
  """
  largest = max(examples.inputs.max(), examples.targets.max())
  if largest >= config.vocab_size:
    raise ValueError(
        f'{origin} has token {largest}, but the network has only'
        f" {config.vocab_size} tokens. Raise vocab_size, or use the task's"
        ' vocabulary.'
    )


def join(parts: Sequence[Examples]) -> Examples:
  """Returns the examples of all parts, padded to one length.

  Args:
    parts: examples in numpy arrays, at least one part.
  """

  def joined(*arrays):
    width = max(array.shape[1] for array in arrays)
    padded = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in arrays)
    return np.concatenate(list(padded))

  return jax.tree.map(joined, *parts)


def trim_padding(examples: Examples, multiple: int = 8) -> Examples:
  """Removes the columns in which every example is padded.

  Args:
    examples: examples in numpy arrays.
    multiple: number to whose multiple the lengths are rounded up, because odd
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
  """Returns decoder inputs: a 0, then the targets without the last column."""
  start = jnp.zeros_like(targets[..., :1])
  return jnp.concatenate([start, targets[..., :-1]], axis=-1)


@dataclasses.dataclass(frozen=True)
class Shuffle:
  """An endless order of length-bucketed batches, reshuffled every epoch.

  Batches come in groups, one group per device call. Examples of a group have
  similar lengths, so that the call computes little padding. The assignment of
  examples to groups and the order of groups differ between epochs. An epoch has
  only full groups; the examples left out also differ between epochs.

  Attributes:
    lengths: [num_examples] int32, tokens of each example.
    batch_size: examples per batch.
    group_size: batches per group.
    seed: seed of the order.
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
    """Returns the example indices of batches `first` to `last - 1`.

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
    # A stable sort keeps examples of equal length in shuffled order.
    order = order[np.argsort(self.lengths[order], kind='stable')]
    groups = order.reshape(-1, self.group_size * self.batch_size)
    groups = rng.permuted(rng.permutation(groups), axis=1)
    return groups.reshape(-1, self.batch_size).astype(np.int32)


def in_order(examples: Examples, batch_size: int) -> Examples:
  """Splits all examples into batches, in their order, for evaluation.

  The last batch is filled up with examples that consist of padding, which have
  weight 0.

  Args:
    examples: examples in numpy arrays.
    batch_size: examples per batch.
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
