# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The batches of each device call of a training run.

The device holds one copy of the examples per length to which batches are cut.
There are few lengths, because each causes a compilation of the train step.
Dropout masks depend on the length. It is therefore that of all steps up to the
next multiple of `steps_per_call`, wherever checkpoints divide them into calls.
"""

from typing import Any

import jax
import numpy as np

from speculative_t5x.training import batches
from speculative_t5x.training import on_policy

_LENGTH_STEP = 8  # batches are padded to multiples of this length


class Feed:
  """Provides examples on the device, and the indices of each batch.

  Samples lie behind the examples, until the next ones replace them.
  """

  def __init__(
      self,
      examples: batches.TokenPairs,
      *,
      train_steps: int,
      batch_size: int,
      steps_per_call: int,
      seed: int,
      samples: on_policy.Samples | None = None,
  ):
    """Put the examples, as numpy arrays, on the device.

    Batches of `steps_per_call` steps have one length. Samples replace targets
    of examples.
    """
    self._given = examples
    self._samples = samples
    self._train_steps = train_steps
    self._periods = (steps_per_call,)
    if samples:
      self._periods += (samples.period,)
    self._drawn = range(0)  # the steps whose samples were drawn
    self._put(examples)
    # With a group larger than the data, an epoch would have no group.
    group_size = min(steps_per_call, examples.num_examples // batch_size)
    self._shuffle = batches.Shuffle(
        examples.lengths, batch_size, group_size, seed
    )

  def _put(self, examples: batches.TokenPairs) -> None:
    self._lengths = examples.lengths
    self._examples = jax.device_put(examples)
    self._cut: dict[int, batches.TokenPairs] = {}

  def batches(
      self, first: int, last: int, params: Any
  ) -> tuple[batches.TokenPairs, np.ndarray]:
    """Return examples, and the indices of steps `first` to `last - 1`.

    The parameters after the steps made draw samples. Examples are cut to a
    common length; the indices into them are [last - first, batch] int32.
    """
    if self._samples and first not in self._drawn:
      self._draw(first, params)
    # Not of this call's steps alone: dropout masks depend on the length, and a
    # resumed training may divide the same steps into other calls.
    longest = int(self._lengths[self._indices(*self._window(first))].max())
    length = -(-longest // _LENGTH_STEP) * _LENGTH_STEP
    if length not in self._cut:
      self._cut[length] = self._examples.cut(length)
    return self._cut[length], self._indices(first, last)

  def _window(self, step: int) -> tuple[int, int]:
    """Return the steps among which a step has its length: first, and end."""
    floors = (step // period * period for period in self._periods)
    ends = ((step // period + 1) * period for period in self._periods)
    return max(self._drawn.start, *floors), min(self._train_steps, *ends)

  def _indices(self, first: int, last: int) -> np.ndarray:
    """Return the indices of steps `first` to `last - 1`; see `batches`."""
    indices = self._shuffle.indices(first, last)
    if self._samples:
      # Row i of the samples' part has those of step `self._drawn.start + i`.
      count = self._samples.num_per_batch
      rows = np.arange(first, last)[:, None] - self._drawn.start
      columns = np.arange(count)
      indices[:, :count] = self._given.num_examples + rows * count + columns
    return indices

  def _draw(self, first: int, params: Any) -> None:
    period, count = self._samples.period, self._samples.num_per_batch
    end = min((first // period + 1) * period, self._train_steps)
    self._drawn = range(first, end)
    drawn = self._shuffle.indices(first, end)[:, :count]
    inputs = self._given.inputs[drawn.ravel()]
    targets = self._samples.draw(
        params,
        inputs,
        first * count + np.arange(drawn.size, dtype=np.int32),
        self._given.targets.shape[1],
    )
    sampled = batches.TokenPairs(inputs, targets)
    self._put(batches.join([self._given, sampled]))
