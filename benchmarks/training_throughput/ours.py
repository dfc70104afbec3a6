# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains by this package's train steps."""

from collections.abc import Callable

import jax

from benchmarks.training_throughput import cases
from speculative_t5x.training import adafactor
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import losses
from speculative_t5x.training import steps


def make_train(case: cases.Case) -> Callable[[], None]:
  """Returns a function that trains the steps of a case, and waits for them."""
  objective = cross_entropy.CrossEntropy(case.config, losses.LossConfig())
  optimizer = adafactor.make(lambda step: cases.LEARNING_RATE)
  train_steps = steps.make_train_steps(optimizer, seed=0)
  examples = jax.device_put(case.examples())
  indices = case.indices()
  state = adafactor.start(optimizer, steps.init_params(case.config, seed=0))

  def train() -> None:
    nonlocal state
    state, metrics = train_steps(objective, state, examples, indices)
    jax.block_until_ready((state, metrics))

  return train
