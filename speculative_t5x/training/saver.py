# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures, saves and finds the states of a training run, and says so."""

from collections.abc import Callable, Mapping
import math
import os
import sys
import time
from typing import Any, NoReturn

from etils import epath
from flax.training import train_state
import jax
import numpy as np
import optax

from speculative_t5x.loading import checkpoints
from speculative_t5x.research import progress
from speculative_t5x.speculation import ranges
from speculative_t5x.training import adafactor
from speculative_t5x.training import history as history_lib
from speculative_t5x.training import steps


def newest(
    init: Callable[[], Any],
    optimizer: optax.GradientTransformation,
    model_dir: epath.Path,
    train_steps: int,
) -> train_state.TrainState | None:
  """Return the state of the newest whole checkpoint; None without one.

  `init` returns the first parameters, and `adafactor.make` the optimizer.
  """
  folders = {
      step: folder
      for step, folder in checkpoints.step_folders(model_dir).items()
      if not checkpoints.is_cut_off(folder)
  }
  if not folders:
    return None
  last = max(folders)
  if last > train_steps:
    raise ranges.ArgumentError(
        f'{folders[last]} is beyond train_steps {train_steps}. Raise'
        ' train_steps, or choose another model_dir.',
        train_steps=train_steps,
        model_dir=model_dir,
    )
  params = jax.eval_shape(init)
  states = jax.eval_shape(
      lambda params: adafactor.to_param_states(optimizer.init(params)), params
  )
  step, *found = checkpoints.open(folders[last]).restore_state(params, states)
  return adafactor.from_param_states(optimizer, step, *found)


class Saver:
  """Measures and saves train states.

  Attributes:
    history: What was measured at the checkpoints.
    window: The steps since the last checkpoint.
  """

  def __init__(
      self,
      validation: steps.Validation,
      model_dir: epath.Path,
      keep: int | None,
      state: train_state.TrainState,
      exit_layer: int | None,
  ):
    """Read the history, and do what is missing after a resumption.

    A job may be killed after it saved a checkpoint and before it kept its
    measures. Training goes on from the state. The `keep` newest checkpoints are
    kept, beside the best one; None for all. `exit_layer` is kept in each.
    """
    self._validation = validation
    self._model_dir = model_dir
    self._keep = keep
    self._exit_layer = exit_layer
    self.window = Window()
    step = int(state.step)
    self.history = history_lib.History(model_dir, step)
    points = self.history.points
    if step and (not points or points[-1].step != step):
      self.history.add(self._measure(state))

  def save(self, state: train_state.TrainState) -> None:
    """Measure a state, save both if the measures are finite, and show them."""
    point = self._measure(state)
    checkpoints.save(
        self._model_dir,
        point.step,
        state.params,
        adafactor.to_param_states(state.opt_state),
        self._exit_layer,
    )
    self.history.add(point)
    self._remove_others()
    measured = listed(point.validation)
    show(f'training: saved step {point.step}, {measured}')
    self.window = Window()

  def _measure(self, state: train_state.TrainState) -> history_lib.Measures:
    training = self.window.means()
    measured = self._validation(state.params)
    step = int(state.step)
    # A gradient can be NaN although the loss of its step was finite, and a
    # second moment too large for float32 would stop its parameter for good.
    if not (
        all(map(math.isfinite, measured.values()))
        and all(map(checkpoints.is_finite, jax.tree.leaves(state)))
    ):
      refuse_not_finite(
          f'The training state or the validation after step {step} is not'
          ' finite.',
          self._model_dir,
      )
    return history_lib.Measures(
        step, training, measured, self._validation.score(measured), time.time()
    )

  def _remove_others(self) -> None:
    """Remove checkpoints that are neither among the newest nor the best."""
    if self._keep is None:
      return
    folders = checkpoints.step_folders(self._model_dir)
    for step in sorted(folders)[: -self._keep]:
      if step == self.history.best.step:
        continue
      if os.path.islink(folders[step]):
        os.unlink(folders[step])
      else:
        folders[step].rmtree()


def refuse_not_finite(found: str, model_dir: epath.Path) -> NoReturn:
  """Raise the ValueError of a training that diverged, after a sentence."""
  raise ValueError(
      f'{found} Lower the learning rate, lengthen its warmup or change the'
      f' seed; resuming from {model_dir} without a change would fail again.'
  )


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
