# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedules."""

from collections.abc import Callable
import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

LearningRateFn = Callable[[ArrayLike], ArrayLike]


def rsqrt_decay(
    *, learning_rate: float = 0.01, warmup_steps: int = 1000
) -> LearningRateFn:
  """Returns T5X's schedule 'constant * linear_warmup * rsqrt_normalized_decay'.

  Args:
    learning_rate: the rate after the warmup; relative to a parameter's RMS.
    warmup_steps: steps of linear warmup from 0; afterwards the rate is
      proportional to 1 / sqrt(step).
  """
  _check_schedule(learning_rate, warmup_steps)

  def schedule(step: ArrayLike) -> jax.Array:
    start = jnp.float32(max(warmup_steps, 1))
    warmup = jnp.minimum(1.0, step / start) if warmup_steps else 1.0
    return learning_rate * warmup * jnp.sqrt(start / jnp.maximum(step, start))

  return schedule


def _check_schedule(learning_rate: float, warmup_steps: int) -> None:
  _check_whole('warmup_steps', warmup_steps, least=0)
  is_number = isinstance(learning_rate, (int, float))
  if not is_number or not 0 <= learning_rate < math.inf:
    raise ValueError(
        f'learning_rate must be finite and at least 0, got {learning_rate!r}.'
    )


def _check_whole(name: str, value: int, least: int) -> None:
  if not isinstance(value, int) or value < least:
    raise ValueError(
        f'{name} must be a whole number and at least {least}, got {value!r}.'
    )


def linear_decay(
    *,
    train_steps: int,
    learning_rate: float = 0.01,
    warmup_steps: int = 1000,
    decay_steps: int | None = None,
) -> LearningRateFn:
  """Returns a schedule of linear warmup, a constant rate and linear decay to 0.

  Args:
    train_steps: total number of training steps.
    learning_rate: the constant rate; relative to a parameter's RMS.
    warmup_steps: steps of linear warmup from 0.
    decay_steps: number of last steps, in which the rate decays; None for half
      of all steps.
  Raises:
    ValueError: for an invalid number, or if warmup and decay together are
      longer than the training.
  """
  _check_whole('train_steps', train_steps, least=1)
  _check_schedule(learning_rate, warmup_steps)
  if decay_steps is None:
    decay_steps = train_steps // 2
  _check_whole('decay_steps', decay_steps, least=0)
  if warmup_steps + decay_steps > train_steps:
    raise ValueError(
        f'warmup_steps {warmup_steps} and decay_steps {decay_steps} (by default'
        f' half of train_steps) together exceed train_steps {train_steps}.'
        ' Lower one of them, in a job WARMUP_STEPS or DECAY_STEPS.'
    )

  def schedule(step: ArrayLike) -> jax.Array:
    warmup = jnp.minimum(1.0, step / max(warmup_steps, 1))
    decay = jnp.minimum(1.0, (train_steps - step) / max(decay_steps, 1))
    return learning_rate * (warmup if warmup_steps else 1.0) * decay

  return schedule
