# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""k-sequential selection among independent candidates: SpecTr.

Legend: rows, width (candidates per position), vocab.
Reference: Sun et al. (2023), "SpecTr: Fast Speculative Decoding via Optimal
Transport", Algorithm 2 and Section 5, arXiv:2310.15141.
"""

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification

_HALVINGS = 40


@struct.dataclass
class KSequential(verification.Tokenwise):
  """The rule that tests independent candidates, each by one threshold.

  Of k candidates, drawn from q independently of each other, the first one is
  accepted that passes its test, with probability min(1, p / (r q)). The divisor
  r in [1, k] is the smallest by which a token is accepted with at most its
  probability p. With beta = sum min(q, p / r), the probability that a candidate
  passes, it solves 1 - (1 - beta)^k = r beta. Where none passes, the token is
  drawn from p - min(q, p / r) (1 - (1 - beta)^k) / beta.

  One candidate is tested as by the paper's rule, and a chain is a tree of one
  candidate per position. At temperature 0 of the drafter all candidates are one
  token, and a tree is no better than a chain.
  """

  name = 'k_sequential'
  tests_undrawn = False

  def draw_candidates(self, logits, sampling, uniforms) -> jax.Array:
    probs = sampling_lib.standardize(logits, sampling)
    draw = jax.vmap(sampling_lib.draw, (None, -2), -1)
    return draw(probs, uniforms)

  def choose(self, target_probs, siblings, uniforms) -> candidates.Selection:
    p, q = target_probs, _as_precise(siblings, target_probs)
    count = jnp.sum(siblings.is_there, axis=1, keepdims=True, dtype=jnp.int32)
    share = p / _divisor(p, q, count)
    at = lambda probs: jnp.take_along_axis(probs, siblings.tokens, axis=1)
    passes = siblings.is_there & verification.acceptance(
        at(share), at(q), uniforms
    )
    width = passes.shape[1]
    index = jnp.arange(width, dtype=jnp.int32)
    first = jnp.min(jnp.where(passes, index, width), axis=1)
    overlap = jnp.minimum(q, share)
    beta = jnp.sum(overlap, axis=1, keepdims=True)
    factor = _any_passes(beta, count) / jnp.where(beta > 0, beta, 1)
    rest = jnp.maximum(p - overlap * factor, 0)
    # Without any, p and q are equal up to rounding, which caused the rejection.
    has_rest = jnp.sum(rest, axis=1, keepdims=True) > 0
    return candidates.Selection(first, jnp.where(has_rest, rest, p))


def _as_precise(siblings: candidates.Siblings, p: jax.Array) -> jax.Array:
  """Return q, [rows, vocab], in the dtype of p; 0 where it is not a number."""
  q = sampling_lib.standardize(siblings.logits, siblings.sampling)
  return jnp.where(q > 0, q, 0).astype(p.dtype)


def _any_passes(beta: jax.Array, count: jax.Array) -> jax.Array:
  """Return 1 - (1 - beta)^count, without cancellation for a small beta."""
  # Beyond 1, by rounding, there is no logarithm, and that of 0 is infinite.
  any_of_some = -jnp.expm1(count * jnp.log1p(-jnp.minimum(beta, 1)))
  return jnp.where(count > 0, any_of_some, 0)


def _divisor(p: jax.Array, q: jax.Array, count: jax.Array) -> jax.Array:
  """Return the smallest valid divisor r, [rows, 1]: see `KSequential`.

  By bisection: r beta rises with r, and 1 - (1 - beta)^k falls. The upper end
  is always valid, so that rounding costs acceptance alone.
  """
  ones = jnp.ones_like(p[:, :1])

  def halve(_, bounds):
    low, high = bounds
    middle = (low + high) / 2
    beta = jnp.sum(jnp.minimum(q, p / middle), axis=1, keepdims=True)
    is_valid = _any_passes(beta, count) <= middle * beta
    return jnp.where(is_valid, low, middle), jnp.where(is_valid, middle, high)

  largest = jnp.maximum(count, 1).astype(p.dtype)
  _, high = lax.fori_loop(0, _HALVINGS, halve, (ones, largest))
  return high
