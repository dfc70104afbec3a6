# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Coupled rules: samples that no drafter changes, arXiv:2408.07978.

The token of a position is the target's draw from noise that row and position
decide. The drafter draws from the same noise, so that similar distributions
often draw the same token, and a draft token is accepted if it is the target's
own. Speculative samples are those of plain decoding, token for token and up to
rounding, with every drafter, gamma, policy, batch and load.

They accept fewer draft tokens than the paper's rule, of which no coupling
accepts more. `speculation.noise` accepts and emits; a rule here only draws.

Legend: vocab. `...` stands for any leading axes.
"""

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import sampling


@struct.dataclass
class Coupled:
  """Draws by inverse CDF, from a uniform that target and drafter share.

  Its samples are those of plain decoding under any other rule, which draws from
  the same uniforms. Where the order of the vocabulary says nothing of the
  tokens, as here, a little mass that moves at the beginning moves the intervals
  of all tokens after it: near distributions draw other tokens more often than
  with Gumbel noise.
  """

  name = 'coupled'
  is_lossless = True

  def draw(self, probs: jax.Array, uniforms: jax.Array) -> jax.Array:
    return sampling.draw(probs, uniforms)


@struct.dataclass
class CoupledGumbel:
  """Draws by Gumbel noise, which target and drafter share per token.

  A token is argmax(log p + g), g one Gumbel number per position and token of
  the vocabulary. Target and drafter draw the same token with probability at
  least (1 - TV) / (1 + TV), TV being their total variation distance. Plain
  decoding needs the rule too, as it draws other samples without.
  """

  name = 'coupled_gumbel'
  is_lossless = True

  def draw(self, probs: jax.Array, uniforms: jax.Array) -> jax.Array:
    times = exponentials(uniforms, probs.shape[-1], probs.dtype)
    # With g = -log(e), argmax(log p + g) is argmin(e / p): whose clock of rate
    # p rings first. In log p + g, float32 would round e away beside log p.
    times = jnp.where(probs > 0, times / probs, jnp.inf)
    first = jnp.min(times, axis=-1, keepdims=True)
    # In two passes, as `sampling` takes the argmax: jnp.argmin is slow on CPU.
    index = lax.broadcasted_iota(jnp.int32, times.shape, times.ndim - 1)
    last = times.shape[-1] - 1
    return jnp.min(jnp.where(times == first, index, last), axis=-1)


def exponentials(
    uniforms: jax.Array, vocab_size: int, dtype: jnp.dtype
) -> jax.Array:
  """Return exponential numbers of rate 1, [..., vocab], above 0.

  The two words of a uniform, [..., 2], are the key of as many hashes.
  """
  keys = jax.random.wrap_key_data(uniforms, impl='threefry2x32')
  draw = lambda key: jax.random.bits(key, (vocab_size,), jnp.uint32)
  words = jax.vmap(draw)(keys.reshape(-1)).reshape(*keys.shape, vocab_size)
  # The winner has one of the smallest, which -log(u) would round: u is near 1
  # there. A token is drawn with its probability up to 2^-33.
  halves = (words.astype(dtype) + 0.5) * 2.0**-32
  return -jnp.log1p(-jnp.minimum(halves, 1 - jnp.finfo(dtype).epsneg))
