# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Norms of networks beside T5, whose own is `t5_layers.RMSNorm`.

All compute in float32, over [..., embed].
"""

from typing import Any

import flax.linen as nn
from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp


class RMSNormPlusOne(nn.Module):
  """A norm by the root of the mean square with scale 1 + w, as Gemma's."""

  dtype: jnp.dtype
  epsilon: float

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    scale = _vector('scale', nn.initializers.zeros, x.shape[-1])
    x = x.astype(jnp.float32)
    mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    # 1 + w is not rounded to the dtype: a w near 0 would be lost.
    normalized = x * lax.rsqrt(mean_square + self.epsilon) * (1 + scale)
    return normalized.astype(self.dtype)


class LayerNorm(nn.Module):
  """A norm by mean and variance, with scale and bias."""

  dtype: jnp.dtype
  epsilon: float

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    scale = _vector('scale', nn.initializers.ones, x.shape[-1])
    bias = _vector('bias', nn.initializers.zeros, x.shape[-1])
    x = x.astype(jnp.float32)
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    normalized = x * lax.rsqrt(variance + self.epsilon) * scale + bias
    return normalized.astype(self.dtype)


def _vector(name: str, init: Any, size: int) -> jax.Array:
  param = partitioning.param_with_axes(
      name, init, (size,), jnp.float32, axes=('embed',)
  )
  return param.astype(jnp.float32)
