# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Norms over [..., embed], or over the lanes of a head, computed in float32."""

from typing import Any

import flax.linen as nn
from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import config as config_lib


class RMSNorm(nn.Module):
  """T5's layer norm, without mean subtraction and without bias."""

  dtype: jnp.dtype
  epsilon: float = 1e-6

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    scale = _vector('scale', nn.initializers.ones, x.shape[-1])
    # Rounded to the dtype before it is scaled, as in T5X.
    normalized = _normalized(x, self.epsilon).astype(self.dtype)
    return normalized * scale.astype(self.dtype)


class RMSNormPlusOne(nn.Module):
  """A norm by the root of the mean square with scale 1 + w, as Gemma's."""

  dtype: jnp.dtype
  epsilon: float

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    scale = _vector('scale', nn.initializers.zeros, x.shape[-1])
    # 1 + w is not rounded to the dtype: a w near 0 would be lost.
    normalized = _normalized(x, self.epsilon) * (1 + scale.astype(jnp.float32))
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
    x = _normalized(x - jnp.mean(x, axis=-1, keepdims=True), self.epsilon)
    x = x * scale.astype(jnp.float32) + bias.astype(jnp.float32)
    return x.astype(self.dtype)


_NORMS = {
    config_lib.RMS: RMSNorm,
    config_lib.RMS_PLUS_ONE: RMSNormPlusOne,
    config_lib.LAYER: LayerNorm,
}


def of(config: config_lib.Stack, name: str | None = None) -> nn.Module:
  """Return a norm of a stack's kind."""
  return _NORMS[config.norm](config.dtype, config.norm_eps, name=name)


def _vector(name: str, init: Any, size: int) -> jax.Array:
  return partitioning.param_with_axes(
      name, init, (size,), jnp.float32, axes=('embed',)
  )


def _normalized(x: jax.Array, epsilon: float) -> jax.Array:
  """Return float32 numbers divided by the root of their mean square."""
  x = x.astype(jnp.float32)
  mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
  return x * lax.rsqrt(mean_square + epsilon)
