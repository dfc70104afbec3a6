# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which guesses to keep: Section 2.3 and Algorithm 1 of Leviathan et al.

In the paper's symbols, the target's distribution is p and the draft's q. All
functions are pure functions of uniforms, so any outcome can be forced.

Legend: batch, gamma (guesses a block), vocab.
"""

from typing import NamedTuple, Protocol

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from speculative_t5x import sampling
from speculative_t5x import seam


class Verdict(NamedTuple):
  """What was kept of a draft.

  Attributes:
    num_accepted: [batch] int32 in [0, lengths].
    next_token: [batch] int32: drawn after the accepted ones. A recovered token
      if a guess was rejected, else the bonus token.
  """

  num_accepted: jax.Array
  next_token: jax.Array


class Rule(Protocol):
  """A way to decide what is kept: a pytree, whose values do not recompile."""

  def __call__(
      self,
      target_probs: jax.Array,
      draft: seam.Draft,
      accept_uniforms: jax.Array,
      draw_uniforms: jax.Array,
  ) -> Verdict:
    """See `verify` for what is given."""


@struct.dataclass
class Tokenwise:
  """The paper's rule, which keeps the target's law."""

  def __call__(
      self, target_probs, draft, accept_uniforms, draw_uniforms
  ) -> Verdict:
    return verify(target_probs, draft, accept_uniforms, draw_uniforms)


TOKENWISE = Tokenwise()


def acceptance(
    target_probs: Float[Array, '*batch'],
    draft_probs: Float[Array, '*batch'],
    uniforms: Float[Array, '*batch'],
) -> Array:
  """Whether to keep guesses, from both models' probabilities of them.

  Accepts with probability min(1, p / q). No division, and never a token that
  the target gives probability 0, not even when the uniform is exactly 0.

  Reference: Leviathan et al. (2023), Section 2.3, arXiv:2211.17192v2.
  """
  return uniforms.astype(draft_probs.dtype) * draft_probs < target_probs


def residual(
    target_probs: Float[Array, '*batch vocab'],
    draft_probs: Float[Array, '*batch vocab'],
) -> Float[Array, '*batch vocab']:
  """Weights to draw from after a rejection: max(0, p - q), not normalised.

  The mass is the probability of a rejection, so it is 0 only where p equals q
  to rounding and a rejection was itself due to rounding; p is drawn from then.

  Reference: Leviathan et al. (2023), Section 2.3, arXiv:2211.17192v2.
  """
  excess = jnp.maximum(target_probs - draft_probs, 0)
  has_mass = jnp.sum(excess, axis=-1, keepdims=True) > 0
  return jnp.where(has_mass, excess, target_probs)


def verify(
    target_probs: Float[Array, 'batch positions vocab'],
    draft: seam.Draft,
    accept_uniforms: Float[Array, 'batch gamma'],
    draw_uniforms: Float[Array, ' batch'],
) -> Verdict:
  """Keeps the longest accepted prefix of each row and draws one more token.

  Lines 3 to 5 of Algorithm 1, with p_i = target_probs[:, i - 1]. A row's draft
  may be shorter than gamma; its bonus token follows its last real guess.

  Args:
    target_probs: [batch, gamma + 1, vocab], standardized; position i is the
      law of the token after i guesses.
    draft: the guesses, and the law each was drawn from.
    accept_uniforms: [batch, gamma] in [0, 1), one a guess.
    draw_uniforms: [batch] in [0, 1), for the token drawn at the end.
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
    draft: seam.Draft,
    num_accepted: Int[Array, ' batch'],
    uniforms: Float[Array, ' batch'],
) -> Verdict:
  """Draws the token after the guesses that were kept: Algorithm 1, line 4 on.

  Args:
    target_probs: [batch, gamma + 1, vocab], as for `verify`.
    draft: the guesses.
    num_accepted: [batch] int32 in [0, lengths].
    uniforms: [batch] in [0, 1).
  """
  at = num_accepted[:, None, None]
  next_probs = jnp.take_along_axis(target_probs, at, axis=1)[:, 0]
  rejected_probs = _draft_probs_at(draft, num_accepted)
  is_rejected = num_accepted < draft.lengths
  weights = jnp.where(
      is_rejected[:, None],
      residual(next_probs, rejected_probs.astype(next_probs.dtype)),
      next_probs,
  )
  return Verdict(num_accepted, sampling.draw(weights, uniforms))


def _accepted_prefix(
    target_probs: jax.Array, draft: seam.Draft, uniforms: jax.Array
) -> Int[Array, ' batch']:
  tokens = draft.tokens[..., None]
  take = lambda probs: jnp.take_along_axis(probs, tokens, axis=-1)[..., 0]
  target_at = take(target_probs[:, :-1])
  draft_at = jnp.where(
      draft.is_point_mass[:, None], 1, take(draft.probs)
  ).astype(target_at.dtype)
  return count_prefix(draft, acceptance(target_at, draft_at, uniforms))


def count_prefix(
    draft: seam.Draft, is_kept: Bool[Array, 'batch gamma']
) -> Int[Array, ' batch']:
  """How many guesses come before the first that is not kept."""
  index = jnp.arange(draft.tokens.shape[1], dtype=draft.lengths.dtype)[None]
  is_kept &= index < draft.lengths[:, None]
  return jnp.sum(jnp.cumprod(is_kept, axis=1), axis=1, dtype=jnp.int32)


def _draft_probs_at(draft: seam.Draft, position: jax.Array) -> jax.Array:
  """The law of the guess at a position, [batch, vocab]."""
  last = draft.tokens.shape[1] - 1
  at = jnp.minimum(position, last)[:, None]
  probs = jnp.take_along_axis(draft.probs, at[..., None], axis=1)[:, 0]
  token = jnp.take_along_axis(draft.tokens, at, axis=1)
  vocab = jnp.arange(probs.shape[-1], dtype=token.dtype)[None]
  point_mass = (vocab == token).astype(probs.dtype)
  return jnp.where(draft.is_point_mass[:, None], point_mass, probs)
