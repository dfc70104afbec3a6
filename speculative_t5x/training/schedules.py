# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The learning rate schedule, joined from optax's."""

from collections.abc import Callable

from jax.typing import ArrayLike
import optax

from speculative_t5x.speculation import ranges

LearningRateFn = Callable[[ArrayLike], ArrayLike]


def linear_decay(
    *,
    train_steps: int,
    learning_rate: float = 0.01,
    warmup_steps: int = 1000,
    decay_steps: int | None = None,
) -> LearningRateFn:
  """Return a schedule of linear warmup, a constant rate and linear decay to 0.

  Args:
    train_steps: The total number of training steps.
    learning_rate: The constant rate, relative to a parameter's RMS.
    warmup_steps: Steps of linear warmup from 0; at most a tenth of all steps
      where they do not fit before the decay, as in a short trial.
    decay_steps: The number of last steps, in which the rate decays; None for
      half of all steps.
  Raises:
    ValueError: if a number is out of range, or if the decay is longer than the
      training.
  """
  ranges.check_settings(ranges.COUNT, train_steps=train_steps)
  if decay_steps is None:
    decay_steps = train_steps // 2
  ranges.check_settings(ranges.whole(0, train_steps), decay_steps=decay_steps)
  ranges.check_settings(ranges.NATURAL, warmup_steps=warmup_steps)
  ranges.check_settings(ranges.COEFFICIENT, learning_rate=learning_rate)
  if warmup_steps + decay_steps > train_steps:
    warmup_steps = min(train_steps // 10, train_steps - decay_steps)
  constant_steps = train_steps - warmup_steps - decay_steps
  # Without decay steps the last schedule is never reached.
  decay = optax.linear_schedule(
      learning_rate, 0.0, max(decay_steps, 1), constant_steps
  )
  # As T5X computes it: optax's `linear_schedule` subtracts from the last rate,
  # which rounds the first ones. Without warmup steps it is never used.
  warmup = lambda step: learning_rate * step / max(warmup_steps, 1)
  return optax.join_schedules([warmup, decay], [warmup_steps])
