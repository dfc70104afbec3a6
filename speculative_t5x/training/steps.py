# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiled train steps and teacher-forced evaluation.

Steps run in a `lax.scan` over rows of indices into examples that stay on the
device, so that one launch runs any number of steps. The gradient of the
embedding is a scatter: its sums are nondeterministic on a GPU unless XLA is set
to be deterministic; on CPU and TPU they are deterministic.

Legend: batch, length (of the targets), vocab, num_steps.
"""

from collections.abc import Callable
import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
from jax.typing import ArrayLike
import optax

from speculative_t5x.networks import t5
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import losses

Params = Any


def init_state(
    config: t5.T5Config, optimizer: optax.GradientTransformation, seed: int
) -> adafactor.TrainState:
  """Returns a train state with randomly initialised parameters, at step 0."""
  tokens = jnp.ones((1, 1), jnp.int32)
  init = functools.partial(t5.Transformer(config).init, enable_dropout=False)
  params_key, _ = _keys(seed)
  params = jax.jit(init)(params_key, tokens, tokens, tokens)['params']
  step = jnp.zeros((), jnp.int32)
  return adafactor.TrainState(step, params, optimizer.init(params))


def make_train_steps(
    config: t5.T5Config,
    optimizer: optax.GradientTransformation,
    loss_config: losses.LossConfig,
    seed: int,
) -> Callable[
    [adafactor.TrainState, batches.Examples, ArrayLike],
    tuple[adafactor.TrainState, losses.Metrics],
]:
  """Makes the function that trains for several steps per call.

  Args:
    config: the config of the network, with the dropout rate and the dtype of
      training; parameters are always float32.
    optimizer: the optimizer that `adafactor.make` returned.
    loss_config: the configuration of the loss.
    seed: seed of the dropout masks, which also depend on the step.
  Returns:
    A compiled function from the state (whose buffers are donated), all examples
    and indices [num_steps, batch] int32 to the new state and the metrics of
    each step, [num_steps]. Each value of num_steps is compiled once.
  """
  model = t5.Transformer(config)
  _, dropout_key = _keys(seed)

  def loss_fn(params, batch, key):
    logits = _teacher_forced(model, params, batch, rngs={'dropout': key})
    return losses.batch_loss(logits, batch.targets, loss_config)

  def train_step(examples, state, indices):
    key = jax.random.fold_in(dropout_key, state.step)
    (_, metrics), grads = jax.value_and_grad(loss_fn, has_aux=True)(
        state.params, examples.take(indices), key
    )
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return adafactor.TrainState(state.step + 1, params, opt_state), metrics

  @functools.partial(jax.jit, donate_argnums=0)
  def train_steps(state, examples, indices):
    return lax.scan(functools.partial(train_step, examples), state, indices)

  return train_steps


def make_evaluate(
    config: t5.T5Config,
) -> Callable[[Params, batches.Examples], losses.Metrics]:
  """Makes the function that evaluates examples by teacher forcing.

  Dropout, z-loss and label smoothing are off, so `loss_per_token` is the cross
  entropy in nats, independent of the training loss.

  Returns:
    A compiled function from parameters and examples of shape [num_batches,
    batch, length] (see `batches.in_order`) to metrics over all of them.
  """
  model = t5.Transformer(config)
  loss_config = losses.LossConfig(z_loss=0.0)

  @jax.jit
  def evaluate(params, examples):
    def batch_metrics(batch):
      logits = _teacher_forced(model, params, batch, enable_dropout=False)
      return losses.batch_loss(logits, batch.targets, loss_config)[1]

    return jax.tree.map(jnp.sum, lax.map(batch_metrics, examples))

  return evaluate


def _teacher_forced(model, params, batch: batches.Examples, **kwargs):
  return model.apply(
      {'params': params},
      batch.inputs,
      batches.shift_right(batch.targets),
      batch.targets,
      **kwargs,
  )


def _keys(seed: int) -> tuple[jax.Array, jax.Array]:
  """Returns the keys of the initial parameters and of dropout.

  The keys are Threefry's, independent of JAX's default, so that a resumed
  training run draws the same masks as the interrupted one.
  """
  return tuple(jax.random.split(jax.random.key(seed, impl='threefry2x32')))
