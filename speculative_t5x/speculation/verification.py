# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Verification of draft tokens: Algorithm 1 of Leviathan et al. (2023).

In the paper's symbols, the target's distribution is p and the draft's q. All
functions are pure functions of uniforms, so that tests can force any outcome.

Legend: batch, gamma (draft tokens per block), vocab.
"""

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling


@struct.dataclass
class Tokenwise:
  """The rule of the paper, which preserves the target's distribution."""

  name = 'tokenwise'
  is_lossless = True

  def __call__(
      self,
      scores: contracts.Scores,
      draft: contracts.Draft,
      accept_uniforms: jax.Array,
      draw_uniforms: jax.Array,
  ) -> contracts.Verdict:
    """Implements `contracts.Rule.__call__`."""
    return verify(scores.probs, draft, accept_uniforms, draw_uniforms)


TOKENWISE = Tokenwise()


def acceptance(
    target_probs: Float[Array, '*batch'],
    draft_probs: Float[Array, '*batch'],
    uniforms: Float[Array, '*batch'],
) -> Array:
  """Returns whether draft tokens are accepted, bool.

  Accepts a draft token with probability min(1, p / q), without a division. A
  token with target probability 0 is never accepted, even if the uniform is
  exactly 0; nor is a token with draft probability 0, which was not drawn from
  q: the draft's logits were not finite.

  Args:
    target_probs: the draft tokens' probabilities under p.
    draft_probs: the draft tokens' probabilities under q.
    uniforms: uniforms in [0, 1).
  Reference: Leviathan et al. (2023), Section 2.3, arXiv:2211.17192v2.
  """
  is_below = uniforms.astype(draft_probs.dtype) * draft_probs < target_probs
  return is_below & (draft_probs > 0)


def residual(
    target_probs: Float[Array, '*batch vocab'],
    draft_probs: Float[Array, '*batch vocab'],
) -> Float[Array, '*batch vocab']:
  """Returns the weights of the resampled token: max(0, p - q), not normalised.

  Their sum is the probability of a rejection. It is 0 only if p and q are equal
  up to rounding, so that rounding caused the rejection; then returns p.

  Reference: Leviathan et al. (2023), Section 2.3, arXiv:2211.17192v2.
  """
  excess = jnp.maximum(target_probs - draft_probs, 0)
  has_mass = jnp.sum(excess, axis=-1, keepdims=True) > 0
  return jnp.where(has_mass, excess, target_probs)


def verify(
    target_probs: Float[Array, 'batch positions vocab'],
    draft: contracts.Draft,
    accept_uniforms: Float[Array, 'batch gamma'],
    draw_uniforms: UInt32[Array, 'batch 2'],
) -> contracts.Verdict:
  """Accepts each row's draft tokens up to a rejection and draws one token.

  This is the part of Algorithm 1 after the target call, with
  p_i = target_probs[:, i - 1]. The drawn token is resampled after a rejection,
  and otherwise the bonus token. A row's draft may be shorter than gamma; its
  bonus token follows its last draft token.

  Args:
    target_probs: [batch, gamma + 1, vocab], standardized; position i is the
      distribution of the token after i draft tokens.
    draft: the draft tokens, and the distribution of each.
    accept_uniforms: [batch, gamma] in [0, 1), one per draft token.
    draw_uniforms: [batch, 2] random bits, for the resampled or bonus token.
  Raises:
    ValueError: if target_probs does not have gamma + 1 positions.
  Reference: Leviathan et al. (2023), Algorithm 1 and Theorem 3.5,
    arXiv:2211.17192v2.
  """
  gamma = draft.tokens.shape[1]
  if target_probs.shape[1] != gamma + 1:
    raise ValueError(
        f'target_probs must have gamma + 1 = {gamma + 1} positions, got shape'
        f' {target_probs.shape}.'
    )
  num_accepted = _accepted_prefix(target_probs, draft, accept_uniforms)
  return draw_next(target_probs, draft, num_accepted, draw_uniforms)


def draw_next(
    target_probs: Float[Array, 'batch positions vocab'],
    draft: contracts.Draft,
    num_accepted: Int[Array, ' batch'],
    uniforms: UInt32[Array, 'batch 2'],
) -> contracts.Verdict:
  """Draws the resampled or bonus token after the accepted draft tokens.

  Args:
    target_probs: [batch, gamma + 1, vocab], as for `verify`.
    draft: the draft tokens, and the distribution of each.
    num_accepted: [batch] int32 in [0, lengths].
    uniforms: [batch, 2] random bits.
  """
  at = num_accepted[:, None, None]
  next_probs = jnp.take_along_axis(target_probs, at, axis=1)[:, 0]
  if draft.tokens.shape[1] == 0:  # no draft token can be rejected
    weights = next_probs
  else:
    rejected_probs = _draft_probs_at(draft, num_accepted, next_probs)
    weights = jnp.where(
        (num_accepted < draft.lengths)[:, None],
        residual(next_probs, rejected_probs),
        next_probs,
    )
  return contracts.Verdict(num_accepted, sampling.draw(weights, uniforms))


def _accepted_prefix(
    target_probs: jax.Array, draft: contracts.Draft, uniforms: jax.Array
) -> Int[Array, ' batch']:
  tokens = draft.tokens[..., None]
  take = lambda probs: jnp.take_along_axis(probs, tokens, axis=-1)[..., 0]
  target_at = take(target_probs[:, :-1])
  if draft.probs is None:
    draft_at = jnp.ones_like(target_at)
  else:
    draft_at = take(draft.probs).astype(target_at.dtype)
  if draft.is_point_mass is not None:
    draft_at = jnp.where(draft.is_point_mass, 1, draft_at)
  return count_prefix(draft, acceptance(target_at, draft_at, uniforms))


def count_prefix(
    draft: contracts.Draft, is_accepted: Bool[Array, 'batch gamma']
) -> Int[Array, ' batch']:
  """Returns the number of draft tokens before the first that is rejected."""
  index = jnp.arange(draft.tokens.shape[1], dtype=draft.lengths.dtype)[None]
  is_accepted &= index < draft.lengths[:, None]
  return jnp.sum(jnp.cumprod(is_accepted, axis=1), axis=1, dtype=jnp.int32)


def _draft_probs_at(
    draft: contracts.Draft, position: jax.Array, target_probs: jax.Array
) -> jax.Array:
  """Returns the draft token's distribution q at a position, [batch, vocab]."""
  last = draft.tokens.shape[1] - 1
  at = jnp.minimum(position, last)[:, None]
  take = lambda x: jnp.take_along_axis(x, at, axis=1)
  vocab = jnp.arange(target_probs.shape[-1], dtype=draft.tokens.dtype)[None]
  point_mass = (vocab == take(draft.tokens)).astype(target_probs.dtype)
  if draft.probs is None:
    return point_mass
  probs = jnp.take_along_axis(draft.probs, at[..., None], axis=1)[:, 0]
  probs = probs.astype(target_probs.dtype)
  if draft.is_point_mass is None:
    return probs
  return jnp.where(take(draft.is_point_mass), point_mass, probs)
