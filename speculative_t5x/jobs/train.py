# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The train job: trains a T5 network and saves checkpoints for T5X.

The splits are tokenized once, kept in memory and put on the device. A train
step depends only on the job's arguments and the step number, and checkpoints
include the optimizer's state. Therefore an interrupted training run resumes
from the newest checkpoint with the same result as an uninterrupted one
(bit-equal on a deterministic device).
"""

from collections.abc import Mapping
import dataclasses
import os
import sys
import time

from etils import epath
import jax
import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x import batching
from speculative_t5x import checkpoints
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5
from speculative_t5x.outputs import folder_lock
from speculative_t5x.runtime import interruption
from speculative_t5x.runtime import quiet
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import losses
from speculative_t5x.training import schedules
from speculative_t5x.training import steps

FEATURES = ('inputs', 'targets')
_LENGTH_STEP = 16  # batches are padded to multiples of this length
TASK_FEATURE_LENGTHS = {'inputs': 96, 'targets': 96}


@dataclasses.dataclass(frozen=True)
class Result:
  """The result of a training run.

  Attributes:
    step: total number of steps.
    checkpoint: folder of the last checkpoint.
    validation_loss: teacher-forced cross entropy per target token, nats.
    validation_accuracy: fraction of target tokens with the largest logit, in
      [0, 1].
  """

  step: int
  checkpoint: str
  validation_loss: float
  validation_accuracy: float


def train(
    *,
    mixture_or_task_name: str,
    network_config: t5.T5Config,
    model_dir: checkpoints.Path,
    train_steps: int,
    learning_rate_fn: schedules.LearningRateFn,
    batch_size: int = 256,
    task_feature_lengths: Mapping[str, int] = TASK_FEATURE_LENGTHS,
    loss_config: losses.LossConfig = losses.LossConfig(),  # noqa: B008
    train_split: str = 'train',
    validation_split: str = 'validation',
    seed: int = 0,
    checkpoint_period: int = 1000,
    keep: int | None = None,
    steps_per_call: int = 20,
    progress_seconds: float = 10.0,
) -> Result:
  """Trains from scratch, or resumes from the newest checkpoint in `model_dir`.

  Prints its progress to stderr.

  Args:
    mixture_or_task_name: name of a registered seqio task or mixture with the
      features `inputs` and `targets`, of which one epoch is read.
    network_config: the config of the network, with the dropout rate and the
      dtype of training.
    model_dir: folder for the `checkpoint_<step>` folders; made if missing.
    train_steps: total number of steps, with those before a resumption.
    learning_rate_fn: see `schedules.linear_decay`, `schedules.rsqrt_decay`.
    batch_size: examples per step.
    task_feature_lengths: maximum tokens of 'inputs' and 'targets'; longer
      sequences are truncated. Values above the data's lengths cost no time.
    loss_config: the configuration of the loss.
    train_split: name of the split to train on.
    validation_split: name of the split to evaluate on at each checkpoint.
    seed: seed of the initial parameters, the order of examples and dropout.
    checkpoint_period: steps between checkpoints; the last step is always saved.
    keep: number of newest checkpoints to keep; None for all.
    steps_per_call: train steps per device call.
    progress_seconds: minimum seconds between two lines of progress.
  Returns:
    The result of the last step.
  Raises:
    ValueError: if an argument does not fit the data, if the data does not fit
      the network, or if the loss is not finite.
    checkpoints.CheckpointError: a ValueError, if the checkpoint in `model_dir`
      is of another network.
  """
  _check_positive(
      train_steps=train_steps,
      batch_size=batch_size,
      checkpoint_period=checkpoint_period,
      keep=1 if keep is None else keep,
      steps_per_call=steps_per_call,
  )
  examples_lib.check_lengths(task_feature_lengths)
  token_decoder.check_int32('seed', seed)
  model_dir = epath.Path(model_dir)
  with folder_lock.hold(model_dir):
    examples, validation = (
        _read_examples(
            mixture_or_task_name, split, task_feature_lengths, network_config
        )
        for split in (train_split, validation_split)
    )
    _check_batch_size(batch_size, examples, mixture_or_task_name)
    optimizer = adafactor.make(learning_rate_fn)
    saver = _Saver(
        model_dir,
        steps.make_evaluate(network_config),
        jax.device_put(batches.in_order(validation, batch_size)),
        keep,
    )
    state = _start_or_resume(
        network_config, optimizer, seed, model_dir, train_steps
    )
    progress = _Progress(train_steps, learning_rate_fn, progress_seconds)
    progress.start(int(state.step), examples, validation, state.params)
    state = _run(
        state,
        steps.make_train_steps(network_config, optimizer, loss_config, seed),
        _Feed(examples, batch_size, steps_per_call, seed),
        _Stops(train_steps, checkpoint_period, steps_per_call),
        saver,
        progress,
    )
    return progress.end(saver.result(state))


def _run(
    state: adafactor.TrainState,
    train_steps_fn,
    feed: '_Feed',
    stops: '_Stops',
    saver: '_Saver',
    progress: '_Progress',
) -> adafactor.TrainState:
  """Trains from the state's step to the end."""
  step = int(state.step)
  while step < stops.train_steps:
    stop = stops.after(step)
    state, metrics = train_steps_fn(state, *feed.batches(step, stop))
    metrics = jax.device_get(metrics)
    interruption.check()
    _check_finite(metrics.loss, step, saver.model_dir)
    progress.add(stop, metrics)
    step = stop
    if stops.is_checkpoint(step):
      progress.show_validation(saver.save(state))
  return state


class _Feed:
  """Provides the batches of each device call, truncated to a common length.

  The device holds one copy of the examples per length. There are few lengths,
  because each causes a compilation of the train step.
  """

  def __init__(self, examples, batch_size: int, steps_per_call: int, seed):
    self._lengths = examples.lengths
    self._examples = jax.device_put(examples)
    # With a group larger than the data, an epoch would have no group.
    group_size = min(steps_per_call, examples.num_examples // batch_size)
    self._shuffle = batches.Shuffle(self._lengths, batch_size, group_size, seed)
    self._cut: dict[int, batches.Examples] = {}

  def batches(self, first: int, last: int):
    """Returns examples, and the indices of steps `first` to `last - 1`."""
    indices = self._shuffle.indices(first, last)
    longest = int(self._lengths[indices].max())
    length = -(-longest // _LENGTH_STEP) * _LENGTH_STEP
    if length not in self._cut:
      self._cut[length] = self._examples.cut(length)
    return self._cut[length], indices


@dataclasses.dataclass(frozen=True)
class _Stops:
  """The steps at which a device call ends.

  They depend only on the arguments of the training run, so that a resumed run
  makes the same compiled calls as an uninterrupted one.
  """

  train_steps: int
  checkpoint_period: int
  steps_per_call: int

  def after(self, step: int) -> int:
    """Returns the next stop after a step."""
    periods = self.checkpoint_period, self.steps_per_call
    return min(self.train_steps, *((step // p + 1) * p for p in periods))

  def is_checkpoint(self, step: int) -> bool:
    return step == self.train_steps or step % self.checkpoint_period == 0


@dataclasses.dataclass
class _Saver:
  """Evaluates and saves train states, and caches the last evaluation."""

  model_dir: epath.Path
  evaluate_fn: object
  validation: batches.Examples
  keep: int | None
  scored: tuple[int, losses.Metrics] | None = None

  def save(self, state: adafactor.TrainState) -> losses.Metrics:
    """Evaluates a state, and saves it if its validation loss is finite."""
    metrics = self.score(state)
    checkpoints.save(
        self.model_dir,
        int(state.step),
        state.params,
        adafactor.to_param_states(state.opt_state),
    )
    if self.keep is not None:
      folders = checkpoints.step_folders(self.model_dir)
      for step in sorted(folders)[: -self.keep]:
        _remove(folders[step])
    return metrics

  def score(self, state: adafactor.TrainState) -> losses.Metrics:
    step = int(state.step)
    if self.scored is None or self.scored[0] != step:
      metrics = self.evaluate_fn(state.params, self.validation)
      self.scored = step, jax.device_get(metrics)
    # A gradient can be NaN although the loss of its step was finite.
    _check_finite(self.scored[1].loss[None], step - 1, self.model_dir)
    return self.scored[1]

  def result(self, state: adafactor.TrainState) -> Result:
    metrics = self.score(state)
    return Result(
        step=int(state.step),
        checkpoint=str(self.model_dir / f'checkpoint_{int(state.step)}'),
        validation_loss=float(metrics.loss_per_token),
        validation_accuracy=float(metrics.accuracy),
    )


def _remove(folder: epath.Path) -> None:
  if os.path.islink(folder):
    os.unlink(folder)
  else:
    folder.rmtree()


class _Progress:
  """Prints progress on stderr: step, loss, speed and remaining time."""

  def __init__(self, train_steps, learning_rate_fn, seconds: float):
    self._train_steps = train_steps
    self._learning_rate_fn = learning_rate_fn
    self._seconds = seconds
    self._started = time.monotonic()
    self._begin_window(0)

  def start(self, step, examples, validation, params) -> None:
    num_params = sum(x.size for x in jax.tree.leaves(params))
    lengths = examples.inputs.shape[1], examples.targets.shape[1]
    _show(
        f'training {num_params:,} parameters on {jax.devices()[0].device_kind}'
        f' from step {step} to {self._train_steps}: {examples.num_examples:,}'
        f' examples of up to {lengths[0]} and {lengths[1]} tokens,'
        f' {validation.num_examples:,} to validate'
    )
    self._begin_window(step)

  def add(self, step: int, metrics: losses.Metrics) -> None:
    """Adds the metrics of a call, and prints a line if one is due."""
    self._window.append(metrics)
    seconds = time.monotonic() - self._window_started
    if seconds < self._seconds and step < self._train_steps:
      return
    total = jax.tree.map(lambda *x: np.concatenate(x).sum(), *self._window)
    steps_per_second = (step - self._window_step) / seconds
    left = (self._train_steps - step) / steps_per_second
    _show(
        f'step {step}/{self._train_steps}'
        f'  loss {total.loss_per_token:.4f}'
        f'  accuracy {total.accuracy:.4f}'
        f'  learning rate {float(self._learning_rate_fn(step - 1)):.5f}'
        f'  {total.num_tokens / seconds:,.0f} target tokens/s'
        f'  {_duration(left)} left'
    )
    self._begin_window(step)

  def show_validation(self, metrics: losses.Metrics) -> None:
    _show(
        f'  saved; validation loss {metrics.loss_per_token:.4f}'
        f'  accuracy {metrics.accuracy:.4f}'
    )

  def end(self, result: Result) -> Result:
    _show(
        f'trained to step {result.step} in'
        f' {_duration(time.monotonic() - self._started)}: validation loss'
        f' {result.validation_loss:.4f}, accuracy'
        f' {result.validation_accuracy:.4f}; saved {result.checkpoint}'
    )
    return result

  def _begin_window(self, step: int) -> None:
    self._window = []
    self._window_step = step
    self._window_started = time.monotonic()


def _show(line: str) -> None:
  print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
  minutes, seconds = divmod(round(seconds), 60)
  return f'{minutes}m{seconds:02d}s'


def _start_or_resume(
    config: t5.T5Config,
    optimizer,
    seed: int,
    model_dir: epath.Path,
    train_steps: int,
) -> adafactor.TrainState:
  """Returns the newest checkpoint's state, or a new state without one."""

  def start():
    return steps.init_state(config, optimizer, seed)

  folders = checkpoints.step_folders(model_dir)
  if not folders:
    return start()
  newest = max(folders)
  if newest > train_steps:
    raise ValueError(
        f'{folders[newest]} is beyond train_steps {train_steps}. Raise'
        ' train_steps, or choose another model_dir.'
    )
  expected = jax.eval_shape(start)
  step, params, param_states = checkpoints.open(folders[newest]).restore_state(
      expected.params,
      jax.eval_shape(adafactor.to_param_states, expected.opt_state),
  )
  return adafactor.from_param_states(optimizer, step, params, param_states)


def _read_examples(
    name: str,
    split: str,
    task_feature_lengths: Mapping[str, int],
    config: t5.T5Config,
) -> batches.Examples:
  """Tokenizes a split, and checks that its ids are in the network's range."""
  with quiet.quiet_stderr():  # SentencePiece logs how it normalizes
    dataset = _dataset(name, split, task_feature_lengths)
    rows = [tuple(x[f] for f in FEATURES) for x in dataset.as_numpy_iterator()]
  if not rows:
    raise ValueError(
        f'Split {split!r} of {name!r} has no examples. Pass another split.'
    )
  inputs, targets = zip(*rows, strict=True)
  examples = batches.Examples(
      batching.pad(inputs, task_feature_lengths['inputs']),
      batching.pad(targets, task_feature_lengths['targets']),
  )
  largest = max(examples.inputs.max(), examples.targets.max())
  if largest >= config.vocab_size:
    raise ValueError(
        f'Split {split!r} of {name!r} has token {largest}, but the network has'
        f' only {config.vocab_size} tokens. Raise vocab_size, or use the'
        " task's vocabulary."
    )
  return batches.trim_padding(examples)


def _dataset(
    name: str, split: str, task_feature_lengths: Mapping[str, int]
) -> tf.data.Dataset:
  """Returns one epoch of a split, in order."""
  if set(task_feature_lengths) != set(FEATURES):
    raise ValueError(
        f'task_feature_lengths must have exactly the keys {FEATURES}. Got'
        f' {dict(task_feature_lengths)}.'
    )
  quiet.keep_tensorflow_off_accelerators()
  try:
    task = seqio.get_mixture_or_task(name)
  except ValueError as error:
    raise ValueError(
        f'There is no seqio task or mixture {name!r}. Import the module that'
        ' registers it, or choose one of'
        f' {sorted([*seqio.TaskRegistry.names()])}.'
    ) from error
  if split not in task.splits:
    raise ValueError(
        f'{name!r} has no split {split!r}. Choose train_split and'
        f' validation_split from {sorted(task.splits)}.'
    )
  return task.get_dataset(
      dict(task_feature_lengths), split=split, shuffle=False, num_epochs=1
  )


def _check_positive(**values: int) -> None:
  for name, value in values.items():
    if value < 1:
      raise ValueError(f'{name} must be at least 1. Got {value}.')


def _check_batch_size(
    batch_size: int, examples: batches.Examples, name: str
) -> None:
  if batch_size > examples.num_examples:
    raise ValueError(
        f'batch_size {batch_size} exceeds the {examples.num_examples} training'
        f' examples of {name!r}. Lower it.'
    )


def _check_finite(losses: np.ndarray, step: int, model_dir: epath.Path) -> None:
  """Checks that losses are finite; the first is of step `step + 1`."""
  is_bad = ~np.isfinite(losses)
  if is_bad.any():
    raise ValueError(
        f'The loss is not finite at step {step + 1 + int(is_bad.argmax())}.'
        ' Lower the learning rate, lengthen its warmup or change the seed;'
        f' resuming from {model_dir} without a change would fail again.'
    )
