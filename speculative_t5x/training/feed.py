# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The batches of each device call of a training run.

The device holds one copy of the examples per length to which batches are cut.
There are few lengths, because each causes a compilation of the train step.
Dropout masks depend on the length. It is therefore that of all steps up to the
next multiple of `steps_per_call`, wherever checkpoints divide them into calls.
"""

import jax
import numpy as np

from speculative_t5x.training import batches

_LENGTH_STEP = 8  # batches are padded to multiples of this length


class Feed:
  """Provides examples on the device, and the indices of each batch."""

  def __init__(
      self,
      examples: batches.TokenPairs,
      *,
      train_steps: int,
      batch_size: int,
      steps_per_call: int,
      seed: int,
  ):
    """Put the examples, as numpy arrays, on the device.

    Batches of `steps_per_call` steps have one length.
    """
    self._train_steps = train_steps
    self._steps_per_call = steps_per_call
    self._lengths = examples.lengths
    self._examples = jax.device_put(examples)
    self._cut: dict[int, batches.TokenPairs] = {}
    # With a group larger than the data, an epoch would have no group.
    group_size = min(steps_per_call, examples.num_examples // batch_size)
    self._shuffle = batches.Shuffle(
        examples.lengths, batch_size, group_size, seed
    )

  def batches(
      self, first: int, last: int
  ) -> tuple[batches.TokenPairs, np.ndarray]:
    """Return examples, and the indices of steps `first` to `last - 1`.

    Examples are cut to a common length; the indices into them are [last -
    first, batch] int32.
    """
    # The length is that of all steps of a whole call, not of the part of one
    # that a checkpoint leaves: dropout masks depend on it.
    start = first // self._steps_per_call * self._steps_per_call
    end = min(start + self._steps_per_call, self._train_steps)
    longest = int(self._lengths[self._shuffle.indices(start, end)].max())
    length = -(-longest // _LENGTH_STEP) * _LENGTH_STEP
    if length not in self._cut:
      self._cut[length] = self._examples.cut(length)
    return self._cut[length], self._shuffle.indices(first, last)
