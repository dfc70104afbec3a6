# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of a training run on stderr: steps, losses, speed, time left."""

from collections.abc import Mapping
import sys
import time

import jax
import numpy as np

from speculative_t5x.research import progress
from speculative_t5x.training import steps


class Window:
  """The metrics of the steps since the last checkpoint, and their means."""

  def __init__(self):
    self._started = time.monotonic()
    self._metrics: list[steps.Sums] = []

  def add(self, metrics: steps.Sums) -> None:
    """Add the metrics of the steps of a call, [num_steps] each."""
    self._metrics.append(metrics)

  def means(self) -> dict[str, float]:
    """Return the means over the steps; none without a step."""
    if not self._metrics:
      return {}
    total = jax.tree.map(
        lambda *x: float(np.concatenate(x).sum()), *self._metrics
    )
    seconds = time.monotonic() - self._started
    return {
        'loss': total.loss / total.num_tokens,
        'accuracy': total.num_correct / total.num_tokens,
        'target_tokens_per_second': total.num_tokens / seconds,
    }

  def describe(self, step: int, train_steps: int, learning_rate: float) -> str:
    """Describe the steps since the last checkpoint, and the time left."""
    means = self.means()
    num_steps = sum(len(metrics.loss) for metrics in self._metrics)
    seconds_per_step = (time.monotonic() - self._started) / num_steps
    return (
        f'training: step {step} of {train_steps},'
        f' loss {means["loss"]:.4f}, accuracy {means["accuracy"]:.4f},'
        f' learning rate {learning_rate:.5f},'
        f' {means["target_tokens_per_second"]:,.0f} target tokens/s,'
        f' {progress.duration((train_steps - step) * seconds_per_step)} left'
    )


def listed(measured: Mapping[str, float]) -> str:
  """List what was measured."""
  return ', '.join(f'{name} {x:.4f}' for name, x in measured.items())


def show(line: str) -> None:
  """Print a line to stderr at once."""
  print(line, file=sys.stderr, flush=True)
