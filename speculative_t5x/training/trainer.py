# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains on examples in memory, saves checkpoints for T5X, and resumes.

A step depends only on the settings and the step number, and checkpoints include
the optimizer's state. Therefore an interrupted training run resumes from the
newest checkpoint with the same result as an uninterrupted one (bit-equal on a
deterministic device).
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
import os
import sys
import time
from typing import Protocol

from etils import epath
import jax
import numpy as np
import optax

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import curves
from speculative_t5x.training import history
from speculative_t5x.training import interruption
from speculative_t5x.training import losses
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from speculative_t5x.training import tensorboard

_LENGTH_STEP = 8  # batches are padded to multiples of this length


@dataclasses.dataclass(frozen=True)
class Settings:
  """How long and how often.

  Attributes:
    train_steps: total number of steps, with those before a resumption.
    batch_size: examples per step.
    num_parts: gradient accumulation: the parts that a batch is divided into.
    seed: seed of the initial parameters, the order of examples and dropout.
    checkpoint_period: steps between checkpoints; the last step is always saved.
    keep: number of newest checkpoints to keep, beside the best one; None for
      all.
    steps_per_call: train steps per device call.
    patience: the training ends after this many checkpoints without a better
      one; None for never.
    progress_seconds: minimum seconds between two lines of progress.
  """

  train_steps: int
  batch_size: int = 256
  num_parts: int = 1
  seed: int = 0
  checkpoint_period: int = 1000
  keep: int | None = None
  steps_per_call: int = 20
  patience: int | None = None
  progress_seconds: float = 10.0

  def __post_init__(self):
    for name in (
        'train_steps', 'batch_size', 'num_parts', 'checkpoint_period',
        'steps_per_call', 'keep', 'patience',
    ):  # fmt: skip
      value = getattr(self, name)
      if value is not None or name not in ('keep', 'patience'):
        ranges.check_settings(ranges.COUNT, **{name: value})
    if self.batch_size % self.num_parts:
      raise ValueError(
          f'batch_size {self.batch_size} cannot be divided into num_parts'
          f' {self.num_parts}. Choose a divisor.'
      )
    ranges.check_settings(ranges.NATURAL, seed=self.seed)
    token_decoder.check_int32('seed', self.seed)

  def stop_after(self, step: int, *other_periods: int) -> int:
    """Returns the step at which the next device call ends.

    It depends only on the settings, so that a resumed run makes the same
    compiled calls as an uninterrupted one.

    Args:
      step: steps made.
      *other_periods: no call goes beyond a multiple of them either.
    """
    periods = self.checkpoint_period, self.steps_per_call, *other_periods
    return min(self.train_steps, *((step // p + 1) * p for p in periods))

  def is_checkpoint(self, step: int) -> bool:
    """Returns whether the state after a step is saved."""
    return step == self.train_steps or step % self.checkpoint_period == 0


def check_period(settings: Settings, period: int) -> None:
  """Checks that a resumed training draws samples as an uninterrupted one does.

  Args:
    settings: of the training.
    period: steps between two draws.
  Raises:
    ValueError: if the period does not divide that of checkpoints.
  """
  if settings.checkpoint_period % period:
    raise ValueError(
        f'Samples are drawn every {period} steps, which does not divide the'
        f' checkpoint_period of {settings.checkpoint_period}: a resumed'
        ' training could not draw the same ones. Choose a divisor.'
    )


class Validation(Protocol):
  """Measures parameters at each checkpoint."""

  def __call__(self, params: steps.Params) -> Mapping[str, float]:
    """Returns numbers by their names."""

  def score(self, measured: Mapping[str, float]) -> float:
    """Returns the number that chooses the best checkpoint; higher is better."""


class Samples(Protocol):
  """Decodes of the network in training, which replace targets of examples.

  Attributes:
    period: steps between two draws; it divides the period of checkpoints.
    num_per_batch: examples of each batch whose targets are replaced.
  """

  period: int
  num_per_batch: int

  def draw(
      self,
      params: steps.Params,
      inputs: np.ndarray,
      sample_ids: np.ndarray,
      length: int,
  ) -> np.ndarray:
    """Returns a sample of each input, [num_samples, length] int32.

    Args:
      params: of the network in training.
      inputs: [num_samples, inputs_length] int32.
      sample_ids: [num_samples] int32; a sample depends on its id, its input and
        the parameters alone.
      length: of the longest sample.
    """


@dataclasses.dataclass(frozen=True)
class Result:
  """The result of a training run.

  Attributes:
    last: the measures of the last checkpoint.
    best: those of the checkpoint with the highest score.
    last_checkpoint: the folder of the last checkpoint.
    best_checkpoint: the folder of the best checkpoint.
  """

  last: history.Point
  best: history.Point
  last_checkpoint: str
  best_checkpoint: str


def train(
    objective: steps.Objective,
    validation: Validation,
    examples: batches.Examples,
    learning_rate_fn: schedules.LearningRateFn,
    settings: Settings,
    model_dir: epath.Path,
    init: Callable[[], steps.Params],
    samples: Samples | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> Result:
  """Trains from the first parameters, or resumes from the newest checkpoint.

  Prints its progress to stderr.

  Args:
    objective: what is minimised.
    validation: measures the parameters at each checkpoint.
    examples: to train on, as numpy arrays.
    learning_rate_fn: see `schedules`.
    settings: how long and how often.
    model_dir: folder of the checkpoints, which the caller has locked.
    init: returns the first parameters.
    samples: of the network in training, to train on; None for none.
    mesh: over which examples and parameters are partitioned; None for one
      device.
  Raises:
    ValueError: if a setting does not fit the data, if the loss or a measure is
      not finite, or if the checkpoints are of another training.
    OSError: if the folder cannot be written to; earlier checkpoints stay.
  """
  _check_batch_size(settings.batch_size, examples)
  checkpoints.check_folder(model_dir)
  if samples:
    check_period(settings, samples.period)
  sharding.check_batch(mesh, settings.batch_size // settings.num_parts)
  optimizer = adafactor.make(learning_rate_fn)
  state = _newest(init, optimizer, model_dir, settings.train_steps)
  state = state or adafactor.start(optimizer, init())
  state = steps.place(state, objective, mesh)
  train_steps_fn = steps.make_train_steps(
      optimizer, settings.seed, settings.num_parts, steps.shardings(state, mesh)
  )
  saver = _Saver(validation, settings, model_dir, int(state.step))
  progress = _Progress(settings, learning_rate_fn)
  progress.start(int(state.step), examples, state.params)
  saver.start(state)
  feed = _Feed(examples, settings, samples)
  with sharding.scope(mesh, sharding.MODEL_PARALLEL):
    while not saver.is_done(int(state.step)):
      step = int(state.step)
      stop = settings.stop_after(step, *feed.periods)
      given, indices = feed.batches(step, stop, state.params)
      state, metrics = train_steps_fn(objective, state, given, indices)
      metrics = jax.device_get(metrics)
      interruption.check()
      _check_finite(metrics.loss, step, indices, model_dir)
      progress.add(stop, metrics)
      saver.add(metrics)
      if settings.is_checkpoint(stop):
        progress.show(saver.save(state))
        saver.show()
  return progress.end(saver.result())


def _newest(
    init: Callable[[], steps.Params],
    optimizer: optax.GradientTransformation,
    model_dir: epath.Path,
    train_steps: int,
) -> adafactor.TrainState | None:
  """Returns the state of the newest whole checkpoint; None without one."""
  folders = {
      step: folder
      for step, folder in checkpoints.step_folders(model_dir).items()
      if not checkpoints.is_cut_off(folder)
  }
  if not folders:
    return None
  newest = max(folders)
  if newest > train_steps:
    raise ValueError(
        f'{folders[newest]} is beyond train_steps {train_steps}. Raise'
        ' train_steps, or choose another model_dir.'
    )
  params = jax.eval_shape(init)
  states = jax.eval_shape(
      lambda params: adafactor.to_param_states(optimizer.init(params)), params
  )
  step, *found = checkpoints.open(folders[newest]).restore_state(params, states)
  return adafactor.from_param_states(optimizer, step, *found)


class _Feed:
  """Provides the batches of each device call, truncated to a common length.

  The device holds one copy of the examples per length. There are few lengths,
  because each causes a compilation of the train step. Dropout masks depend on
  the length. It is therefore that of all steps up to the next multiple of
  `steps_per_call`, wherever checkpoints divide them into calls. Samples lie
  behind the examples, until the next ones replace them.
  """

  def __init__(
      self,
      examples: batches.Examples,
      settings: Settings,
      samples: Samples | None,
  ):
    self._given = examples
    self._samples = samples
    self._train_steps = settings.train_steps
    self._steps_per_call = settings.steps_per_call
    self._drawn = range(0)  # the steps whose samples were drawn
    self._put(examples)
    batch_size = settings.batch_size
    # With a group larger than the data, an epoch would have no group.
    group_size = min(
        settings.steps_per_call, examples.num_examples // batch_size
    )
    self._shuffle = batches.Shuffle(
        examples.lengths, batch_size, group_size, settings.seed
    )

  def _put(self, examples: batches.Examples) -> None:
    self._lengths = examples.lengths
    self._examples = jax.device_put(examples)
    self._cut: dict[int, batches.Examples] = {}

  @property
  def periods(self) -> tuple[int, ...]:
    """Steps after whose multiples other samples are drawn."""
    return (self._samples.period,) if self._samples else ()

  def batches(
      self, first: int, last: int, params: steps.Params
  ) -> tuple[batches.Examples, np.ndarray]:
    """Returns examples, and the indices of steps `first` to `last - 1`.

    Args:
      first: the steps made.
      last: the step at which the call ends.
      params: after the steps made.
    Returns:
      The examples, and indices [last - first, batch] int32 into them.
    """
    if self._samples and first not in self._drawn:
      self._draw(first, params)
    longest = int(self._lengths[self._indices(*self._window(first))].max())
    length = -(-longest // _LENGTH_STEP) * _LENGTH_STEP
    if length not in self._cut:
      self._cut[length] = self._examples.cut(length)
    return self._cut[length], self._indices(first, last)

  def _window(self, step: int) -> tuple[int, int]:
    """Returns the steps among which a step has its length: first, and end."""
    periods = self._steps_per_call, *self.periods
    floors = (step // period * period for period in periods)
    first = max(self._drawn.start, *floors)
    end = min((step // period + 1) * period for period in periods)
    return first, min(end, self._train_steps)

  def _indices(self, first: int, last: int) -> np.ndarray:
    """Returns the indices of steps `first` to `last - 1`; see `batches`."""
    indices = self._shuffle.indices(first, last)
    if self._samples:
      indices[:, : self._samples.num_per_batch] = self._places(first, last)
    return indices

  def _draw(self, first: int, params: steps.Params) -> None:
    """Draws samples for the steps from `first` to the end of the period."""
    period = self._samples.period
    end = min((first // period + 1) * period, self._train_steps)
    self._drawn = range(first, end)
    drawn = self._shuffle.indices(first, end)[:, : self._samples.num_per_batch]
    inputs = self._given.inputs[drawn.ravel()]
    targets = self._samples.draw(
        params,
        inputs,
        first * drawn.shape[1] + np.arange(drawn.size, dtype=np.int32),
        self._given.targets.shape[1],
    )
    sampled = batches.Examples(inputs, targets)
    self._put(batches.join([self._given, sampled]))

  def _places(self, first: int, last: int) -> np.ndarray:
    """Returns where the samples of some steps lie, [steps, num_per_batch]."""
    rows = np.arange(first, last) - self._drawn.start
    num_per_batch = self._samples.num_per_batch
    columns = np.arange(num_per_batch)
    return self._given.num_examples + rows[:, None] * num_per_batch + columns


class _Saver:
  """Measures and saves train states."""

  def __init__(
      self,
      validation: Validation,
      settings: Settings,
      model_dir: epath.Path,
      step: int,
  ):
    self._validation = validation
    self._settings = settings
    self._model_dir = model_dir
    self._history = history.History(model_dir, step)
    self._created = time.time()
    self._begin_window()

  def start(self, state: adafactor.TrainState) -> None:
    """Does what is missing after a resumption.

    A job may be killed after it saved a checkpoint and before it kept or showed
    its measures.
    """
    step, points = int(state.step), self._history.points
    if step and (not points or points[-1].step != step):
      self._history.add(self._measure(state))
    if points:
      self.show()

  def _begin_window(self) -> None:
    self._window: list[losses.Metrics] = []
    self._started = time.monotonic()

  def add(self, metrics: losses.Metrics) -> None:
    """Adds the metrics of the steps of a call."""
    self._window.append(metrics)

  def is_done(self, step: int) -> bool:
    """Returns whether no step is to be made after this one."""
    patience = self._settings.patience
    return step >= self._settings.train_steps or (
        patience is not None
        and bool(self._history.points)
        and self._history.num_since_best >= patience
    )

  def save(self, state: adafactor.TrainState) -> history.Point:
    """Measures a state, and saves both if the measures are finite."""
    point = self._measure(state)
    checkpoints.save(
        self._model_dir,
        point.step,
        state.params,
        adafactor.to_param_states(state.opt_state),
    )
    self._history.add(point)
    self._remove_others()
    return point

  def show(self) -> None:
    """Writes the history for TensorBoard and as curves.

    Nothing is lost if this fails: the checkpoint and its measures are saved.
    """
    points = self._history.points
    tensorboard.write(self._model_dir, points, self._created)
    curves.write(self._model_dir, points, self._history.best.step)
    self._begin_window()

  def _measure(self, state: adafactor.TrainState) -> history.Point:
    training = _training(self._window, time.monotonic() - self._started)
    measured = self._validation(state.params)
    step = int(state.step)
    # A gradient can be NaN although the loss of its step was finite, and a
    # second moment too large for float32 would stop its parameter for good.
    if not (
        all(map(math.isfinite, measured.values()))
        and all(map(checkpoints.is_finite, jax.tree.leaves(state)))
    ):
      raise ValueError(
          f'The training state or the validation after step {step} is not'
          ' finite.'
          + _after_failure(self._model_dir)
      )
    return history.Point(
        step,
        training,
        measured,
        self._validation.score(measured),
        time.time(),
    )

  def _remove_others(self) -> None:
    """Removes checkpoints that are neither among the newest nor the best."""
    if self._settings.keep is None:
      return
    folders = checkpoints.step_folders(self._model_dir)
    for step in sorted(folders)[: -self._settings.keep]:
      if step != self._history.best.step:
        _remove(folders[step])

  def result(self) -> Result:
    """Returns the result of the run."""
    folder = lambda point: str(self._model_dir / f'checkpoint_{point.step}')
    last, best = self._history.points[-1], self._history.best
    return Result(last, best, folder(last), folder(best))


def _training(window: Sequence[losses.Metrics], seconds: float) -> dict:
  """Returns the means of the steps since the last checkpoint."""
  if not window:
    return {}
  total = jax.tree.map(lambda *x: float(np.concatenate(x).sum()), *window)
  return {
      'loss': total.loss_per_token,
      'accuracy': total.accuracy,
      'target_tokens_per_second': total.num_tokens / seconds,
  }


def _remove(folder: epath.Path) -> None:
  if os.path.islink(folder):
    os.unlink(folder)
  else:
    folder.rmtree()


class _Progress:
  """Prints progress on stderr: step, loss, speed and remaining time."""

  def __init__(
      self, settings: Settings, learning_rate_fn: schedules.LearningRateFn
  ):
    self._train_steps = settings.train_steps
    self._learning_rate_fn = learning_rate_fn
    self._seconds = settings.progress_seconds
    self._started = time.monotonic()
    self._begin_window(0)

  def _begin_window(self, step: int) -> None:
    self._window: list[losses.Metrics] = []
    self._window_step = step
    self._window_started = time.monotonic()

  def start(self, step: int, examples: batches.Examples, params) -> None:
    """Says what is trained."""
    num_params = sum(x.size for x in jax.tree.leaves(params))
    lengths = examples.inputs.shape[1], examples.targets.shape[1]
    _show(
        f'training {num_params:,} parameters on {jax.devices()[0].device_kind}'
        f' from step {step} to {self._train_steps}: {examples.num_examples:,}'
        f' examples of up to {lengths[0]} and {lengths[1]} tokens'
    )
    self._begin_window(step)

  def add(self, step: int, metrics: losses.Metrics) -> None:
    """Adds the metrics of a call, and prints a line if one is due."""
    self._window.append(metrics)
    seconds = time.monotonic() - self._window_started
    if seconds < self._seconds and step < self._train_steps:
      return
    means = _training(self._window, seconds)
    steps_per_second = (step - self._window_step) / seconds
    left = (self._train_steps - step) / steps_per_second
    _show(
        f'step {step}/{self._train_steps}'
        f'  loss {means["loss"]:.4f}'
        f'  accuracy {means["accuracy"]:.4f}'
        f'  learning rate {float(self._learning_rate_fn(step - 1)):.5f}'
        f'  {means["target_tokens_per_second"]:,.0f} target tokens/s'
        f'  {_duration(left)} left'
    )
    self._begin_window(step)

  def show(self, point: history.Point) -> None:
    """Shows the measures of a checkpoint."""
    _show(f'  saved step {point.step}; {_listed(point.validation)}')

  def end(self, result: Result) -> Result:
    """Says what was trained."""
    _show(
        f'trained to step {result.last.step} in'
        f' {_duration(time.monotonic() - self._started)}:'
        f' {_listed(result.last.validation)}; saved {result.last_checkpoint}'
    )
    if result.best.step != result.last.step:
      _show(
          f'best checkpoint, step {result.best.step}:'
          f' {_listed(result.best.validation)}; saved {result.best_checkpoint}'
      )
    return result


def _listed(measured: Mapping[str, float]) -> str:
  return ', '.join(f'{name} {x:.4f}' for name, x in measured.items())


def _show(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
  minutes, seconds = divmod(round(seconds), 60)
  return f'{minutes}m{seconds:02d}s'


def _check_batch_size(batch_size: int, examples: batches.Examples) -> None:
  if batch_size > examples.num_examples:
    raise ValueError(
        f'batch_size {batch_size} exceeds the {examples.num_examples} training'
        ' examples. Lower it.'
    )


def _check_finite(
    loss: np.ndarray, step: int, indices: np.ndarray, model_dir: epath.Path
) -> None:
  """Checks that losses are finite; the first is of step `step + 1`."""
  is_bad = ~np.isfinite(loss)
  if is_bad.any():
    first = int(is_bad.argmax())
    shown = ', '.join(map(str, indices[first][:5]))
    raise ValueError(
        f'The loss is not finite at step {step + 1 + first}, whose batch has'
        f' the examples {shown}, ...' + _after_failure(model_dir)
    )


def _after_failure(model_dir: epath.Path) -> str:
  return (
      ' Lower the learning rate, lengthen its warmup or change the seed;'
      f' resuming from {model_dir} without a change would fail again.'
  )
