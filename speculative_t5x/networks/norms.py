# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Norms over [..., embed], or over the lanes of a head, computed in float32."""

import flax.linen as nn
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import sharding


class Norm(nn.Module):
  """A norm of a kind that `config.Stack.norm` names."""

  kind: str
  dtype: jnp.dtype
  epsilon: float = 1e-6

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    is_plus_one = self.kind == config_lib.RMS_PLUS_ONE
    init = nn.initializers.zeros if is_plus_one else nn.initializers.ones
    shape, axes = x.shape[-1:], ('embed',)
    scale = sharding.param('scale', init, shape, axes)
    x = x.astype(jnp.float32)
    if self.kind == config_lib.LAYER:
      bias = sharding.param('bias', nn.initializers.zeros, shape, axes)
      x = x - jnp.mean(x, axis=-1, keepdims=True)
    mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    x = x * lax.rsqrt(mean_square + self.epsilon)
    if self.kind == config_lib.RMS:
      # Rounded to the dtype before it is scaled, as in T5X.
      return x.astype(self.dtype) * scale.astype(self.dtype)
    scale = scale.astype(jnp.float32)
    # 1 + w is not rounded to the dtype: a w near 0 would be lost.
    x = x * (1 + scale) if is_plus_one else x * scale + bias.astype(jnp.float32)
    return x.astype(self.dtype)


def of(config: config_lib.Stack, name: str | None = None) -> Norm:
  """Return a norm of a stack's kind."""
  return Norm(config.norm, config.dtype, config.norm_eps, name=name)
