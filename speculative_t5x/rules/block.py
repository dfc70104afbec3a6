# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Block verification: Sun et al. (2024), arXiv:2403.10444.

The draft tokens of a block are tested jointly. A block may be accepted up to a
draft token that follows one whose own test fails, so that at least as many
tokens are accepted as token by token in expectation, and the outputs still
follow the target's distribution.

The gain needs sampling and blocks of at least two tokens that were sampled: at
temperature 0, and for one draft token, both rules accept the same.

Legend: rows, gamma (draft tokens per block), vocab.
"""

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification


@struct.dataclass
class BlockVerification:
  """The rule of block verification, which preserves the target's distribution.

  With w_0 = 1, the i-th draft token x_i has the weight
  w_i = min(1, w_{i-1} p(x_i) / q(x_i)). The residual mass behind it is
  Z_i = sum max(0, w_i p - q), of the distributions of the next token. The
  prefix of i draft tokens passes its test with probability
  Z_i / (Z_i + 1 - w_i), and the whole draft with probability w_i. The longest
  prefix that passes is accepted, and the next token is drawn from the residual
  max(0, w_i p - q), or from p after the whole draft.

  The whole draft is what the rule is given: it may have been cut by its length,
  by an end of sequence or by the limit.
  """

  name = 'block'
  is_lossless = True

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    weights = _prefix_weights(scores.probs, draft)
    num_accepted = _longest_prefix(
        weights[:, 1:],
        _residual_masses(scores.probs, draft, weights[:, 1:]),
        draft.lengths,
        accept_uniforms,
    )
    weight = jnp.take_along_axis(weights, num_accepted[:, None], axis=1)[:, 0]
    next_weights = verification.next_weights(
        scores.probs, draft, num_accepted, target_scale=weight
    )
    return contracts.Verdict(num_accepted, next_weights)


def _prefix_weights(
    target_probs: jax.Array, draft: contracts.Draft
) -> jax.Array:
  """Return w_0 to w_gamma of each row, [rows, gamma + 1] in [0, 1]."""

  def extend(weight, probs):
    p, q = probs
    # Not w p / q, which could overflow. A token with q = 0 was not drawn from
    # q, and is not accepted.
    weight = jnp.minimum(weight * p, q) / jnp.where(q > 0, q, 1)
    return weight, weight

  p = verification.target_token_probs(target_probs, draft)
  q = verification.draft_token_probs(draft, p.dtype)
  ones = jnp.ones(p.shape[:1], p.dtype)
  _, weights = lax.scan(extend, ones, (p.T, q.T), unroll=True)
  return jnp.concatenate([ones[:, None], weights.T], axis=1)


def _residual_masses(
    target_probs: jax.Array, draft: contracts.Draft, weights: jax.Array
) -> jax.Array:
  """Return Z_1 to Z_gamma of each row, [rows, gamma]; the last one is 0.

  The weights, [rows, gamma], are from w_1 on.
  """
  gamma, vocab_size = draft.tokens.shape[1], target_probs.shape[-1]
  p = target_probs[:, 1:gamma]
  q = verification.draft_probs(draft, vocab_size, p.dtype)[:, 1:]
  p = weights[:, : p.shape[1], None] * p
  # A token whose q is NaN was not drawn from q and is always rejected, so that
  # the prefix before it is as good as the whole draft.
  excess = jnp.where(jnp.isnan(q), p, jnp.maximum(p - q, 0))
  masses = jnp.sum(excess, axis=-1)
  return jnp.pad(masses, ((0, 0), (0, gamma - p.shape[1])))


def _longest_prefix(
    weights: jax.Array,
    masses: jax.Array,
    lengths: jax.Array,
    uniforms: jax.Array,
) -> jax.Array:
  """Return how many draft tokens the longest prefix has that passes, [rows].

  The weights are from w_1 on, the masses from Z_1 on.
  """
  count = jnp.arange(1, weights.shape[1] + 1, dtype=jnp.int32)[None]
  is_whole = count == lengths[:, None]
  # Where p and q are equal and w is 1, both are 0: a longer prefix passes then.
  passed = verification.acceptance(
      jnp.where(is_whole, weights, masses),
      jnp.where(is_whole, 1, masses + 1 - weights),
      uniforms,
  )
  passed &= count <= lengths[:, None]
  return jnp.max(jnp.where(passed, count, 0), axis=1, initial=0)
