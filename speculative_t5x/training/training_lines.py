# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a training run prints to stderr: steps, losses, speed, time left."""

from collections.abc import Mapping
import sys
import time

import jax
import numpy as np

from speculative_t5x.training import batches
from speculative_t5x.training import history
from speculative_t5x.training import losses
from speculative_t5x.training import schedules


class Window:
  """The metrics of the steps since it began, and their means."""

  def __init__(self):
    self.started = time.monotonic()
    self._metrics: list[losses.Metrics] = []

  def add(self, metrics: losses.Metrics) -> None:
    """Add the metrics of the steps of a call, [num_steps] each."""
    self._metrics.append(metrics)

  def means(self) -> dict[str, float]:
    """Return the means over the steps; none without a step."""
    if not self._metrics:
      return {}
    total = jax.tree.map(
        lambda *x: float(np.concatenate(x).sum()), *self._metrics
    )
    seconds = time.monotonic() - self.started
    return {
        'loss': total.loss_per_token,
        'accuracy': total.accuracy,
        'target_tokens_per_second': total.num_tokens / seconds,
    }


class Lines:
  """Prints a line per so many seconds of a training run."""

  def __init__(
      self,
      train_steps: int,
      seconds: float,
      learning_rate_fn: schedules.LearningRateFn,
      step: int,
      examples: batches.Examples,
      num_params: int,
  ):
    """Say what is trained.

    Args:
      train_steps: The total number of steps.
      seconds: The least number of seconds between two lines.
      learning_rate_fn: See `schedules`.
      step: The number of steps made.
      examples: Examples to train on.
      num_params: The number of trained parameters.
    """
    self._train_steps = train_steps
    self._seconds = seconds
    self._learning_rate_fn = learning_rate_fn
    self._step = step
    self._started = time.monotonic()
    self._window = Window()
    lengths = examples.inputs.shape[1], examples.targets.shape[1]
    _show(
        f'training {num_params:,} parameters on {jax.devices()[0].device_kind}'
        f' from step {step} to {train_steps}: {examples.num_examples:,}'
        f' examples of up to {lengths[0]} and {lengths[1]} tokens'
    )

  def add(self, step: int, metrics: losses.Metrics) -> None:
    """Add the metrics of a call that ended at a step; print what is due."""
    self._window.add(metrics)
    seconds = time.monotonic() - self._window.started
    if seconds < self._seconds and step < self._train_steps:
      return
    means = self._window.means()
    left = (self._train_steps - step) * seconds / (step - self._step)
    _show(
        f'step {step}/{self._train_steps}'
        f'  loss {means["loss"]:.4f}'
        f'  accuracy {means["accuracy"]:.4f}'
        f'  learning rate {float(self._learning_rate_fn(step - 1)):.5f}'
        f'  {means["target_tokens_per_second"]:,.0f} target tokens/s'
        f'  {_duration(left)} left'
    )
    self._step, self._window = step, Window()

  def saved(self, point: history.Point) -> None:
    """Show the measures of a checkpoint."""
    _show(f'  saved step {point.step}; {_listed(point.validation)}')

  def end(
      self,
      last: history.Point,
      best: history.Point,
      last_checkpoint: str,
      best_checkpoint: str,
  ) -> None:
    """Say what was trained."""
    _show(
        f'trained to step {last.step} in'
        f' {_duration(time.monotonic() - self._started)}:'
        f' {_listed(last.validation)}; saved {last_checkpoint}'
    )
    if best.step != last.step:
      _show(
          f'best checkpoint, step {best.step}: {_listed(best.validation)};'
          f' saved {best_checkpoint}'
      )


def _listed(measured: Mapping[str, float]) -> str:
  return ', '.join(f'{name} {x:.4f}' for name, x in measured.items())


def _show(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
  minutes, seconds = divmod(round(seconds), 60)
  return f'{minutes}m{seconds:02d}s'
