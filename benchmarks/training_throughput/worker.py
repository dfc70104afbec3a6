# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The process of one way to train, which trains when it is told."""

from collections.abc import Callable

import jax

from benchmarks.side_by_side import measuring
from benchmarks.training_throughput import case as case_lib
from speculative_t5x.training import adafactor
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import losses
from speculative_t5x.training import steps

OURS, T5X = WAYS = 'speculative_t5x', 't5x'

_train: Callable[[], None] | None = None  # of this process


def load(way: str, case: case_lib.Case) -> None:
  """Make this process train a case in one way, and compile it."""
  global _train
  if way == OURS:
    _train = make_train(case)
  else:
    from benchmarks.training_throughput import t5x_trainer

    _train = t5x_trainer.make_train(case)
  _train()


def turn() -> list[float]:
  """Train, and return the seconds that the steps took."""
  # Many steps, of which the first, with cold caches, takes little longer.
  return [measuring.seconds(_train)]


def make_train(case: case_lib.Case) -> Callable[[], None]:
  """Return a function that trains by this package's steps and waits."""
  objective = cross_entropy.CrossEntropy(case.config, losses.LossConfig())
  optimizer = adafactor.make(lambda step: case_lib.LEARNING_RATE)
  train_steps = steps.make_train_steps(seed=0)
  examples = jax.device_put(case.examples())
  indices = case.indices()
  state = adafactor.start(optimizer, steps.init_params(case.config, seed=0))

  def train() -> None:
    nonlocal state
    state, metrics = train_steps(objective, state, examples, indices)
    jax.block_until_ready((state, metrics))

  return train
