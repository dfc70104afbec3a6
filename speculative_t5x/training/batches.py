# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token sequences in memory, and the choice of the examples of each batch.

All examples of a training set are padded once to one shape and stay in memory,
or on the device. A batch is then a row of indices, which costs the host little
time per step. Batch k depends only on the seed and on k, so a training run
resumed at step k sees the same batches as an uninterrupted one.
"""

from collections.abc import Mapping, Sequence
import dataclasses

from flax import struct
import jax
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import contracts

Tokens = np.ndarray | jax.Array


@struct.dataclass
class TokenPairs:
  """Pairs of token sequences, with `contracts.NO_TOKEN` behind their ends.

  Networks read them so, and losses give no weight to places without a token. No
  id of a vocabulary would do: in some, 0 is a token like others.
  """

  inputs: Tokens  # [num_examples, inputs_length] int32
  targets: Tokens  # [num_examples, targets_length] int32

  @property
  def num_examples(self) -> int:
    return self.targets.shape[0]

  @property
  def lengths(self) -> np.ndarray:
    """[num_examples] int32, tokens of the longer sequence of each pair."""
    return np.maximum(_lengths(self.inputs), _lengths(self.targets))

  def cut(self, length: int) -> 'TokenPairs':
    """Return the first `length` columns of inputs and targets."""
    return TokenPairs(self.inputs[..., :length], self.targets[..., :length])

  def take(self, indices: Tokens) -> 'TokenPairs':
    """Return the examples at the given indices, int32 of any shape."""
    return TokenPairs(self.inputs[indices], self.targets[indices])


def _lengths(tokens: np.ndarray) -> np.ndarray:
  """Return the number of tokens of each row, [rows] int32."""
  return np.sum(tokens != contracts.NO_TOKEN, axis=1, dtype=np.int32)


def pad(
    inputs: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    network: network_lib.Network,
    origin: str,
    lengths: Mapping[str, int] | None = None,
) -> TokenPairs:
  """Pad sequences of any lengths to arrays that a network can read.

  With maximum lengths of 'inputs' and 'targets', the arrays' lengths are
  rounded up to a multiple of 8, up to these, because odd sizes are slow on
  accelerators; None for the longest sequences. Errors name the origin of the
  tokens.
  """
  arrays = []
  for name, rows in (('inputs', inputs), ('targets', targets)):
    # Inputs of a language model may be empty.
    length = max(1, max(map(len, rows)))
    if lengths is not None:
      length = min(-(-length // 8) * 8, lengths[name])
    arrays.append(batching.pad(rows, length))
  largest = max(tokens.max() for tokens in arrays)
  if largest >= network.vocab_size:
    raise ValueError(
        f'{origin} has token {largest}, but the network has only'
        f" {network.vocab_size} tokens. Raise vocab_size, or use the task's"
        ' vocabulary.'
    )
  return TokenPairs(*arrays)


def join(parts: Sequence[TokenPairs]) -> TokenPairs:
  """Return the examples of all parts, padded to one length.

  They are in numpy arrays, and there is at least one part.
  """

  def joined(*arrays):
    width = max(array.shape[1] for array in arrays)
    return np.concatenate([_pad(x, 0, width - x.shape[1]) for x in arrays])

  return jax.tree.map(joined, *parts)


@dataclasses.dataclass(frozen=True)
class Shuffle:
  """An endless order of length-bucketed batches, reshuffled every epoch.

  Batches come in groups, one group per device call. Examples of a group have
  similar lengths, so that the call computes little padding. The assignment of
  examples to groups and the order of groups differ between epochs. An epoch has
  only full groups; the examples left out also differ between epochs.
  """

  lengths: np.ndarray  # [num_examples] int32, tokens of each example
  batch_size: int
  group_size: int  # batches per group
  seed: int

  @property
  def batches_per_epoch(self) -> int:
    examples_per_group = self.batch_size * self.group_size
    return len(self.lengths) // examples_per_group * self.group_size

  def indices(self, first: int, last: int) -> np.ndarray:
    """Return the example indices of batches `first` to `last - 1`.

    They are [last - first, batch_size] int32 in [0, num_examples).
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
    # A stable sort keeps examples of equal length in shuffled order: otherwise
    # those of the commonest length would always share a batch.
    order = order[np.argsort(self.lengths[order], kind='stable')]
    groups = order.reshape(-1, self.group_size * self.batch_size)
    groups = rng.permuted(rng.permutation(groups), axis=1)
    return groups.reshape(-1, self.batch_size).astype(np.int32)


def in_order(examples: TokenPairs, batch_size: int) -> TokenPairs:
  """Split all examples into batches, in their order, for evaluation.

  The last batch is filled up with examples without a token, of weight 0. The
  examples are in numpy arrays, and what is returned has arrays [num_batches,
  batch_size, length].
  """
  num_batches = -(-examples.num_examples // batch_size)
  missing = num_batches * batch_size - examples.num_examples
  return jax.tree.map(
      lambda tokens: _pad(tokens, missing, 0).reshape(
          num_batches, batch_size, -1
      ),
      examples,
  )


def _pad(tokens: np.ndarray, rows: int, columns: int) -> np.ndarray:
  """Return tokens with more rows and columns, of no token, at their ends."""
  width = ((0, rows), (0, columns))
  return np.pad(tokens, width, constant_values=contracts.NO_TOKEN)
