# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adafactor with T5X's settings, and its state in T5X's checkpoint layout.

Second moments are factored for axes of at least 128 and decay with exponent
0.8. Updates are clipped at an RMS of 1 and scaled by the RMS of the parameter.

Reference: Shazeer and Stern (2018), "Adafactor", arXiv:1804.04235.
"""

from collections.abc import Mapping
from typing import Any

from flax.training import train_state
import jax
import jax.numpy as jnp
import optax

from speculative_t5x.training import schedules

Params = Any


def make(
    learning_rate_fn: schedules.LearningRateFn,
) -> optax.GradientTransformation:
  """Return Adafactor with the settings of T5X's T5 1.1 recipe.

  The learning rate is a function of the step, from 0 on.
  """
  return optax.adafactor(
      learning_rate_fn,
      min_dim_size_to_factor=128,
      decay_rate=0.8,
      multiply_by_parameter_scale=True,
      clipping_threshold=1.0,
      momentum=None,
      eps=1e-30,
      factored=True,
  )


def start(
    optimizer: optax.GradientTransformation, params: Params
) -> train_state.TrainState:
  """Return the state before the first step."""
  # Copied, because a train step donates the state's buffers.
  params = jax.tree.map(jnp.array, params)
  state = train_state.TrainState.create(
      apply_fn=None, params=params, tx=optimizer
  )
  return state.replace(step=jnp.zeros((), jnp.int32))


def to_param_states(opt_state: optax.OptState) -> Mapping[str, Any]:
  """Convert the optimizer's state to T5X's layout, four arrays per parameter.

  The tree is the parameters', with a mapping of `m`, `v`, `v_row` and `v_col`
  per parameter. A factored parameter uses `v_row` and `v_col`, another `v`;
  unused entries are [1] zeros.
  """
  v_row, v_col, v = (
      optax.tree_utils.tree_get(opt_state, name)
      for name in ('v_row', 'v_col', 'v')
  )
  # Without momentum, T5X still saves a placeholder for it.
  return jax.tree.map(
      lambda row, col, full: dict(m=jnp.zeros(1), v=full, v_row=row, v_col=col),
      v_row,
      v_col,
      v,
  )


def from_param_states(
    optimizer: optax.GradientTransformation,
    step: int,
    params: Params,
    param_states: Mapping[str, Any],
) -> train_state.TrainState:
  """Make a train state from a checkpoint, to resume a training run.

  This is the inverse of `to_param_states`. The optimizer is of `make`, and the
  parameters are those after `step` steps.
  """
  part = lambda name: jax.tree.map(lambda _, x: x[name], params, param_states)
  state = start(optimizer, params)
  opt_state = optax.tree_utils.tree_set(
      state.opt_state,
      count=jnp.asarray(step, jnp.int32),
      **{name: part(name) for name in ('v_row', 'v_col', 'v')},
  )
  state = state.replace(step=jnp.asarray(step, jnp.int32), opt_state=opt_state)
  # Copied, because a train step donates the state's buffers: no two leaves may
  # share a buffer (two of them are the step count), and the caller keeps its
  # arrays.
  return jax.tree.map(jnp.array, state)
