# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of any size with random weights, for simulated acceptance.

Both models of such a pair run in full; only the acceptance of draft tokens is
drawn at a given rate alpha. The walltime is therefore that of a pair of these
sizes with this alpha. The outputs are meaningless and do not follow the
target's distribution.
"""

import functools

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts


def make_model(config: t5.T5Config, seed: int = 0) -> models.Model:
  """Make a model with random weights on the device, prepared for decoding.

  Arrays are made one at a time in the config's dtype, so that memory holds only
  one copy.
  """
  prepared = config.prepared(jax.default_backend(), merged=True)
  params = random_params(prepared, seed)
  num_params = models.count_params(config)
  return models.Model(prepared, params, num_params=num_params)


def random_params(config: t5.T5Config, seed: int = 0) -> contracts.Params:
  """Return random weights of suitable scale, in the config's dtype."""
  leaves, tree = jax.tree.flatten(models.abstract_params(config))
  # The fastest generator: no result depends on the values.
  keys = jax.random.split(jax.random.key(seed, impl='rbg'), len(leaves))
  dtype = jnp.dtype(config.dtype)
  values = [_random(leaf.shape, dtype, key) for leaf, key in zip(leaves, keys)]
  return jax.tree.unflatten(tree, values)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random(shape: tuple[int, ...], dtype: jnp.dtype, key) -> jax.Array:
  if len(shape) == 1:  # the scale of a norm
    return jnp.ones(shape, dtype)
  # Uniform with variance 1 / inputs, which is cheaper than normal.
  bound = (3 / shape[0]) ** 0.5
  return jax.random.uniform(key, shape, dtype, -bound, bound)
