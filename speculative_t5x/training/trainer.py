# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains on examples in memory, saves checkpoints for T5X, and resumes.

A step depends only on the settings and the step number, and checkpoints include
the optimizer's state. Therefore an interrupted training run resumes from the
newest checkpoint with the same result as an uninterrupted one (bit-equal on a
deterministic device).
"""

from collections.abc import Callable
import dataclasses
import time

from etils import epath
import jax
import numpy as np

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.networks import sharding
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.speculation import ranges
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import feed as feed_lib
from speculative_t5x.training import history
from speculative_t5x.training import on_policy
from speculative_t5x.training import saver as saver_lib
from speculative_t5x.training import schedules
from speculative_t5x.training import steps

_PROGRESS_SECONDS = 10.0  # least between two lines


@dataclasses.dataclass(frozen=True)
class Settings:
  """Length of a training, its batches, and its periods.

  Attributes:
    train_steps: Total number of steps, with those before a resumption.
    batch_size: Examples per step.
    num_parts: Gradient accumulation: the parts that a batch is divided into.
    seed: Seed of the initial parameters, the order of examples and dropout.
    checkpoint_period: Steps between checkpoints; the last step is always saved.
    keep: Number of newest checkpoints to keep, beside the best one; None for
      all.
    steps_per_call: Train steps per device call.
    patience: The training ends after this many checkpoints without a better
      one; None for never.
  """

  train_steps: int
  batch_size: int = 256
  num_parts: int = 1
  seed: int = 0
  checkpoint_period: int = 1000
  keep: int | None = None
  steps_per_call: int = 20
  patience: int | None = None

  def __post_init__(self):
    counts = dataclasses.asdict(self)
    del counts['seed']
    arguments.check_counts(**counts)
    if self.batch_size % self.num_parts:
      raise ranges.ArgumentError(
          f'batch_size {self.batch_size} cannot be divided into num_parts'
          f' {self.num_parts}. Choose a divisor.',
          batch_size=self.batch_size,
          num_parts=self.num_parts,
      )
    ranges.check_settings(ranges.NATURAL, seed=self.seed)
    request_lib.check_int32('seed', self.seed)

  def stop_after(self, step: int, *other_periods: int) -> int:
    """Return the step at which the next device call ends.

    It depends only on the settings, so that a resumed run makes the same
    compiled calls as an uninterrupted one. No call goes beyond a multiple of a
    period.
    """
    periods = self.checkpoint_period, self.steps_per_call, *other_periods
    return min(self.train_steps, *((step // p + 1) * p for p in periods))

  def is_checkpoint(self, step: int) -> bool:
    """Return whether the state after a step is saved."""
    return step == self.train_steps or step % self.checkpoint_period == 0


@dataclasses.dataclass(frozen=True)
class Trained:
  """The measures of the last and of the best checkpoint, and their folders."""

  last: history.Measures
  best: history.Measures
  last_checkpoint: str
  best_checkpoint: str


def train(
    objective: steps.Objective,
    validation: steps.Validation,
    examples: batches.TokenPairs,
    learning_rate_fn: schedules.LearningRateFn,
    settings: Settings,
    model_dir: epath.Path,
    init: Callable[[], steps.Params],
    samples: on_policy.Samples | None = None,
    mesh: jax.sharding.Mesh | None = None,
    exit_layer: int | None = None,
) -> Trained:
  """Train from the first parameters, or resume from the newest checkpoint.

  Prints its progress to stderr.

  Args:
    objective: What is minimised.
    validation: Measures the parameters at each checkpoint.
    examples: Examples to train on, as numpy arrays.
    learning_rate_fn, settings: See `schedules`, and `Settings`.
    model_dir: The folder of the checkpoints, which the caller has locked.
    init: Returns the first parameters.
    samples: Draws samples of the network in training, to train on. Their period
      divides that of checkpoints.
    mesh: The mesh over which examples and parameters are partitioned.
    exit_layer: Of a head for the first layers of a target, how many.
  Raises:
    ValueError: if a setting does not fit the data, if the loss or a measure is
      not finite, or if the checkpoints are of another training.
    OSError: if the folder cannot be written to; earlier checkpoints stay.
  """
  if settings.batch_size > examples.num_examples:
    raise ranges.ArgumentError(
        f'batch_size {settings.batch_size} exceeds the {examples.num_examples}'
        ' training examples. Lower it.',
        batch_size=settings.batch_size,
    )
  sharding.check_batch(mesh, settings.batch_size // settings.num_parts)
  optimizer = adafactor.make(learning_rate_fn)
  state = saver_lib.newest(init, optimizer, model_dir, settings.train_steps)
  state = state or adafactor.start(optimizer, init())
  state = steps.place(state, objective, mesh)
  train_steps_fn = steps.make_train_steps(
      settings.seed,
      settings.num_parts,
      None if mesh is None else jax.tree.map(lambda x: x.sharding, state),
  )
  step, started = int(state.step), time.monotonic()
  num_params = sum(x.size for x in jax.tree.leaves(state.params))
  saver_lib.show(
      f'training: {num_params:,} parameters on {jax.devices()[0].device_kind}'
      f' from step {step} to {settings.train_steps}: {examples.num_examples:,}'
      f' examples of up to {examples.inputs.shape[1]} and'
      f' {examples.targets.shape[1]} tokens'
  )
  saver = saver_lib.Saver(
      validation, model_dir, settings.keep, state, exit_layer
  )
  feed = feed_lib.Feed(
      examples,
      train_steps=settings.train_steps,
      batch_size=settings.batch_size,
      steps_per_call=settings.steps_per_call,
      seed=settings.seed,
      samples=samples,
  )
  periods = (samples.period,) if samples else ()
  patience, shown = settings.patience, time.monotonic()
  with sharding.scope(mesh, sharding.MODEL_PARALLEL):
    while step < settings.train_steps and (
        patience is None or saver.history.num_since_best < patience
    ):
      stop = settings.stop_after(step, *periods)
      given, indices = feed.batches(step, stop, state.params)
      state, metrics = train_steps_fn(objective, state, given, indices)
      metrics = jax.device_get(metrics)
      _check_finite(metrics.loss, step, indices, model_dir)
      saver.window.add(metrics)
      is_due = time.monotonic() - shown >= _PROGRESS_SECONDS
      if is_due or stop == settings.train_steps:
        rate = float(learning_rate_fn(stop - 1))
        saver_lib.show(saver.window.describe(stop, settings.train_steps, rate))
        shown = time.monotonic()
      if settings.is_checkpoint(stop):
        saver.save(state)
      step = stop
  last, best = saver.history.points[-1], saver.history.best
  folders = [str(model_dir / f'checkpoint_{x.step}') for x in (last, best)]
  saver_lib.show(
      f'training: ended at step {last.step} after'
      f' {progress.duration(time.monotonic() - started)}:'
      f' {saver_lib.listed(last.validation)}; saved {folders[0]}'
  )
  if best.step != last.step:
    saver_lib.show(
        f'training: best at step {best.step}:'
        f' {saver_lib.listed(best.validation)}; saved {folders[1]}'
    )
  return Trained(last, best, *folders)


def _check_finite(
    loss: np.ndarray, step: int, indices: np.ndarray, model_dir: epath.Path
) -> None:
  """Check that losses are finite; the first is of step `step + 1`."""
  bad = np.flatnonzero(~np.isfinite(loss))
  if bad.size:
    shown = ', '.join(map(str, indices[bad[0]][:5]))
    saver_lib.refuse_not_finite(
        f'The loss is not finite at step {step + 1 + bad[0]}, whose batch has'
        f' the examples {shown}, ...',
        model_dir,
    )
