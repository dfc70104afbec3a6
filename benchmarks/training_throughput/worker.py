# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is trained, and the process of one way, which trains when it is told.
"""

from collections.abc import Callable
import dataclasses

import jax
import numpy as np

from benchmarks.side_by_side import measuring
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import losses
from speculative_t5x.training import steps

OURS, T5X = WAYS = 'speculative_t5x', 't5x'
DTYPES = ('float32', 'bfloat16')
LEARNING_RATE = 0.001
_FIRST_ID = 3  # those before are padding, end of sequence and unknown
_NUM_BATCHES = 4  # that are trained on in a circle

_train: Callable[[], None] | None = None  # of this process


@dataclasses.dataclass(frozen=True)
class Case:
  """A network and its batches.

  Attributes:
    size: Size of T5 1.1.
    layers: Layers of the encoder and of the decoder; None for the size's own.
    batch_size: examples per step.
    inputs_length: tokens of each input.
    targets_length: tokens of each target.
    dtype: Dtype of activations; parameters are float32.
    dropout_rate: in [0, 1).
    steps: Steps that are timed together.
  """

  size: str
  layers: int | None
  batch_size: int
  inputs_length: int
  targets_length: int
  dtype: str
  dropout_rate: float
  steps: int

  @property
  def config(self) -> t5.T5Config:
    """The network."""
    config = t5_published.make_config(self.size, self.dtype)
    config = dataclasses.replace(config, dropout_rate=self.dropout_rate)
    if self.layers is None:
      return config
    return dataclasses.replace(
        config,
        num_encoder_layers=self.layers,
        num_decoder_layers=self.layers,
    )

  @property
  def num_target_tokens(self) -> int:
    """Of the steps that are timed together."""
    return self.steps * self.batch_size * self.targets_length

  def examples(self) -> batches.Examples:
    """Returns some batches of random tokens, one example per row."""
    rng = np.random.default_rng(0)
    num_examples = _NUM_BATCHES * self.batch_size
    draw = lambda length: rng.integers(
        _FIRST_ID, self.config.vocab_size, (num_examples, length), np.int32
    )
    return batches.Examples(draw(self.inputs_length), draw(self.targets_length))

  def indices(self) -> np.ndarray:
    """Returns the examples of each step, [steps, batch_size] int32."""
    numbers = np.arange(self.steps * self.batch_size, dtype=np.int32)
    numbers %= _NUM_BATCHES * self.batch_size
    return numbers.reshape(self.steps, self.batch_size)


def load(way: str, case: Case) -> None:
  """Makes this process train a case in one way, and compiles it."""
  global _train
  if way == OURS:
    _train = make_train(case)
  else:
    from benchmarks.training_throughput import t5x_trainer

    _train = t5x_trainer.make_train(case)
  _train()


def turn() -> list[float]:
  """Trains, and returns the seconds that the steps took."""
  # Many steps, of which the first, with cold caches, takes little longer.
  return [measuring.seconds(_train)]


def make_train(case: Case) -> Callable[[], None]:
  """Returns a function that trains by this package's steps, and waits."""
  objective = cross_entropy.CrossEntropy(case.config, losses.LossConfig())
  optimizer = adafactor.make(lambda step: LEARNING_RATE)
  train_steps = steps.make_train_steps(seed=0)
  examples = jax.device_put(case.examples())
  indices = case.indices()
  state = adafactor.start(optimizer, steps.init_params(case.config, seed=0))

  def train() -> None:
    nonlocal state
    state, metrics = train_steps(objective, state, examples, indices)
    jax.block_until_ready((state, metrics))

  return train
