# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Verification of draft tokens: Algorithm 1 of Leviathan et al. (2023).

In the paper's symbols, the target's distribution is p and the draft's q. All
functions are pure functions of uniforms, so that tests can force any outcome.

Legend: batch, gamma (draft tokens per block), width (candidates per position),
vocab.
"""

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib


@struct.dataclass
class Tokenwise(candidates.CandidateRule):
  """The rule of the paper, which preserves the target's distribution.

  Of several candidates per position it tests one after another, which is
  recursive rejection sampling: see `choose` and `choose_undrawn`.
  """

  name = 'tokenwise'
  is_lossless = True
  tests_undrawn = True

  def draw_candidates(self, logits, sampling, uniforms) -> jax.Array:
    return draw_without_replacement(logits, sampling, uniforms)

  def choose(self, target_probs, siblings, uniforms) -> candidates.Selection:
    test = choose_undrawn if siblings.logits is None else choose
    return test(target_probs, siblings, uniforms)

  def __call__(
      self,
      scores: contracts.Scores,
      draft: contracts.Draft,
      accept_uniforms: jax.Array,
  ) -> contracts.Verdict:
    return verify(scores.probs, draft, accept_uniforms)


TOKENWISE = Tokenwise()


def acceptance(
    target_probs: Float[Array, '*batch'],
    draft_probs: Float[Array, '*batch'],
    uniforms: Float[Array, '*batch'],
) -> Array:
  """Return whether draft tokens are accepted, bool.

  A draft token is accepted with probability min(1, p / q), computed without a
  division. A token with target probability 0 is never accepted, even if the
  uniform is exactly 0; nor is a token with draft probability 0, which was not
  drawn from q: the draft's logits were not finite.

  Args:
    target_probs: The draft tokens' probabilities under p.
    draft_probs: The draft tokens' probabilities under q.
    uniforms: Uniforms in [0, 1).
  Reference: Leviathan et al. (2023), Section 2.3, arXiv:2211.17192v2.
  """
  # Strictly below, as a uniform can be 0: with <=, p = 0 would be accepted. The
  # product is in the dtype of the draw, so that q is the probability with which
  # the token was in fact drawn. p = 0.1, q = 0.4: accepted for u below 0.25.
  is_below = uniforms.astype(draft_probs.dtype) * draft_probs < target_probs
  return is_below & (draft_probs > 0)


def residual(
    target_probs: Float[Array, '*batch vocab'],
    draft_probs: Float[Array, '*batch vocab'],
) -> Float[Array, '*batch vocab']:
  """Return the weights of the resampled token: max(0, p - q), not normalised.

  Their sum is the probability of a rejection. It is 0 only if p and q are equal
  up to rounding, so that rounding caused the rejection; then returns p.

  Reference: Leviathan et al. (2023), Section 2.3, arXiv:2211.17192v2.
  """
  # p = (0.5, 0.3, 0.2), q = (0.7, 0.1, 0.2): weights (0, 0.2, 0), of sum 0.2,
  # which is the probability that a token drawn from q is rejected.
  excess = jnp.maximum(target_probs - draft_probs, 0)
  has_mass = jnp.sum(excess, axis=-1, keepdims=True) > 0
  return jnp.where(has_mass, excess, target_probs)


def draw_without_replacement(
    logits: Float[Array, '*batch vocab'],
    sampling: sampling_lib.Sampling,
    uniforms: UInt32[Array, '*batch width 2'],
) -> Int[Array, '*batch width']:
  """Draw tokens of which no two are equal, one after another.

  Each is drawn from the distribution of the logits without the tokens before
  it: at temperature 0 these are the likeliest tokens in order. Where none is
  left, any token fills its place, and `choose` does not accept it.

  Args:
    logits: [rows, ..., vocab].
    sampling: See `sampling.standardize`.
    uniforms: [rows, ..., width, 2] random bits.
  """

  def draw(logits, bits):
    _, tokens = sampling_lib.standardize_and_draw(
        logits, sampling, lambda probs: sampling_lib.draw(probs, bits)
    )
    return _without(logits, tokens), tokens

  _, tokens = lax.scan(draw, logits, jnp.moveaxis(uniforms, -2, 0))
  return jnp.moveaxis(tokens, 0, -1)


def choose(
    target_probs: Float[Array, 'batch vocab'],
    siblings: candidates.Siblings,
    uniforms: Float[Array, 'batch width'],
) -> candidates.Selection:
  """Accept one of the candidates of `draw_without_replacement`, or none.

  Each is tested as the draft token of a chain is. After a rejection p becomes
  the residual, normalized, and q the distribution that the next candidate was
  drawn from, in which the rejected ones are ruled out.

  Args:
    target_probs: [batch, vocab], standardized.
    siblings: The candidates.
    uniforms: [batch, width] in [0, 1), one per candidate.
  Reference: Jeon et al. (2024), "Recursive Speculative Decoding", Theorem 3.1,
    arXiv:2402.14160; with replacement, Miao et al. (2023), "SpecInfer",
    Algorithm 2, arXiv:2305.09781, and Yang et al. (2024), "Multi-Candidate
    Speculative Decoding", arXiv:2401.06706.
  """
  width = siblings.tokens.shape[1]

  def test(carry, candidate):
    p, logits, chosen = carry
    index, token, is_there, uniform = candidate
    q = sampling_lib.standardize(logits, siblings.sampling).astype(p.dtype)
    is_tested = is_there & (chosen == width)
    is_accepted = is_tested & acceptance(
        _at_tokens(p, token), _at_tokens(q, token), uniform
    )
    # p = (0.5, 0.3, 0.2), q = (0.7, 0.1, 0.2), the first token is rejected: the
    # residual is (0, 1, 0), and q becomes (0, 1, 2) / 3.
    rest = residual(p, q)
    # Never 0 / 0: `residual` returns p where nothing is left of it.
    rest = rest / jnp.sum(rest, axis=-1, keepdims=True)
    is_rejected = (is_tested & ~is_accepted)[:, None]
    return (
        jnp.where(is_rejected, rest, p),
        _without(logits, token),
        jnp.where(is_accepted, index, chosen),
    ), None

  none = jnp.full(target_probs.shape[:1], width, jnp.int32)
  tests = siblings.tokens, siblings.is_there, uniforms
  (p, _, chosen), _ = lax.scan(
      test,
      (target_probs, siblings.logits, none),
      (
          jnp.arange(width, dtype=jnp.int32),
          *(jnp.moveaxis(x, 1, 0) for x in tests),
      ),
  )
  return candidates.Selection(chosen, p)


def choose_undrawn(
    target_probs: Float[Array, 'batch vocab'],
    siblings: candidates.Siblings,
    uniforms: Float[Array, 'batch width'],
) -> candidates.Selection:
  """Accept one of several candidates that were not drawn, or none.

  It is `choose` for a q that is 1 at each candidate in turn: after a rejection
  p is normalized without the rejected candidate. A token of probability p is
  thereby accepted with probability p.
  """
  p, tokens, width = target_probs, siblings.tokens, siblings.tokens.shape[1]
  ids = jnp.arange(p.shape[-1], dtype=tokens.dtype)
  is_candidate = (tokens[..., None] == ids) & siblings.is_there[..., None]
  rest = jnp.where(jnp.any(is_candidate, axis=1), 0, p)
  own = jnp.take_along_axis(p, tokens, axis=1)
  own = jnp.where(siblings.is_there, own, 0)
  # p without those before each. Sums alone: a difference would be cancellation.
  # p = (0.5, 0.3, 0.2), candidates 0 and 1: the sums are 1 and 0.5, so that the
  # second is accepted with probability 0.3 / 0.5, where the first was not.
  left = lax.cumsum(own, axis=1, reverse=True)
  left += jnp.sum(rest, axis=-1, keepdims=True)
  index = jnp.arange(width, dtype=jnp.int32)
  is_accepted = acceptance(own, left, uniforms)
  first = jnp.min(jnp.where(is_accepted, index, width), axis=1)
  # By rounding a candidate may be rejected that p has no token besides.
  has_rest = jnp.sum(rest, axis=-1, keepdims=True) > 0
  return candidates.Selection(first, jnp.where(has_rest, rest, p))


def _without(
    logits: Float[Array, '*batch vocab'], tokens: Int[Array, '*batch']
) -> Float[Array, '*batch vocab']:
  """Return logits by which some tokens cannot occur."""
  ids = jnp.arange(logits.shape[-1], dtype=tokens.dtype)
  return jnp.where(ids == tokens[..., None], -jnp.inf, logits)


def verify(
    target_probs: Float[Array, 'batch positions vocab'],
    draft: contracts.Draft,
    accept_uniforms: Float[Array, 'batch gamma'],
) -> contracts.Verdict:
  """Accept each row's draft tokens up to the first rejection.

  This is the part of Algorithm 1 after the target call, but for the draw of the
  next token, with p_i = target_probs[:, i - 1]. A row's draft may be shorter
  than gamma; its bonus token follows its last draft token.

  Args:
    target_probs: [batch, gamma + 1, vocab], standardized; position i is the
      distribution of the token after i draft tokens.
    draft: The draft tokens, and the distribution of each.
    accept_uniforms: [batch, gamma] in [0, 1), one per draft token.
  Reference: Leviathan et al. (2023), Algorithm 1 and Theorem 3.5,
    arXiv:2211.17192v2.
  """
  num_accepted = _accepted_prefix(target_probs, draft, accept_uniforms)
  weights = next_weights(target_probs, draft, num_accepted)
  return contracts.Verdict(num_accepted, weights)


def next_weights(
    target_probs: Float[Array, 'batch positions vocab'],
    draft: contracts.Draft,
    num_accepted: Int[Array, ' batch'],
    target_scale: Float[Array, ' batch'] | None = None,
) -> Float[Array, 'batch vocab']:
  """Return the weights of the resampled or bonus token, not normalised.

  Args:
    target_probs: [batch, gamma + 1, vocab], as for `verify`.
    draft: The draft tokens, and the distribution of each.
    num_accepted: [batch] int32 in [0, lengths].
    target_scale: [batch], a factor of p in the residual; None for 1.
  """
  next_probs = probs_after(target_probs, num_accepted)
  if draft.tokens.shape[1] == 0:  # no draft token can be rejected
    return next_probs
  scaled = next_probs
  if target_scale is not None:
    scaled = target_scale[:, None] * next_probs
  # Of 3 draft tokens, 2 accepted: p and q at index 2 are those of the rejected
  # third token. All 3 accepted: p at index 3 is the bonus token's, without q.
  rejected_probs = _draft_probs_at(draft, num_accepted, next_probs)
  return jnp.where(
      (num_accepted < draft.lengths)[:, None],
      residual(scaled, rejected_probs),
      next_probs,
  )


def probs_after(
    target_probs: Float[Array, 'batch positions vocab'],
    num_accepted: Int[Array, ' batch'],
) -> Float[Array, 'batch vocab']:
  """Return p of the token after the accepted ones."""
  # Position n is about the token after n draft tokens.
  at = num_accepted[:, None, None]
  return jnp.take_along_axis(target_probs, at, axis=1)[:, 0]


def _accepted_prefix(
    target_probs: jax.Array, draft: contracts.Draft, uniforms: jax.Array
) -> Int[Array, ' batch']:
  target_at = target_token_probs(target_probs, draft)
  draft_at = draft_token_probs(draft, target_at.dtype)
  return count_prefix(draft, acceptance(target_at, draft_at, uniforms))


def target_token_probs(
    target_probs: Float[Array, 'batch positions vocab'], draft: contracts.Draft
) -> Float[Array, 'batch gamma']:
  """Return the probability of each draft token under p."""
  return _at_tokens(target_probs[:, :-1], draft.tokens)


def draft_token_probs(
    draft: contracts.Draft, dtype: jnp.dtype
) -> Float[Array, 'batch gamma']:
  """Return the probability of each draft token under q; 1 of a point mass."""
  if draft.probs is None:
    return jnp.ones(draft.tokens.shape, dtype)
  probs = _at_tokens(draft.probs, draft.tokens).astype(dtype)
  if draft.is_point_mass is None:
    return probs
  return jnp.where(draft.is_point_mass, 1, probs)


def draft_probs(
    draft: contracts.Draft, vocab_size: int, dtype: jnp.dtype
) -> Float[Array, 'batch gamma vocab']:
  """Return the distribution q that each draft token was drawn from."""
  vocab = jnp.arange(vocab_size, dtype=draft.tokens.dtype)[None, None]
  point_mass = (vocab == draft.tokens[..., None]).astype(dtype)
  if draft.probs is None:
    return point_mass
  probs = draft.probs.astype(dtype)
  if draft.is_point_mass is None:
    return probs
  return jnp.where(draft.is_point_mass[..., None], point_mass, probs)


def _at_tokens(probs: jax.Array, tokens: jax.Array) -> jax.Array:
  return jnp.take_along_axis(probs, tokens[..., None], axis=-1)[..., 0]


def count_prefix(
    draft: contracts.Draft, is_accepted: Bool[Array, 'batch gamma']
) -> Int[Array, ' batch']:
  """Return the number of draft tokens before the first that is rejected."""
  # Accepted yes no yes with 3 draft tokens: cumprod 1 0 0, so 1 is accepted. A
  # draft of 1 token has at most 1, whatever fills the block after it.
  index = jnp.arange(draft.tokens.shape[1], dtype=draft.lengths.dtype)[None]
  is_accepted &= index < draft.lengths[:, None]
  return jnp.sum(jnp.cumprod(is_accepted, axis=1), axis=1, dtype=jnp.int32)


def _draft_probs_at(
    draft: contracts.Draft, position: jax.Array, target_probs: jax.Array
) -> jax.Array:
  """Return the draft token's distribution q at a position, [batch, vocab]."""
  # With all gamma tokens accepted there is no rejected one; any will do, as the
  # caller then takes the bonus token's distribution. Position 3 of 3: index 2.
  last = draft.tokens.shape[1] - 1
  at = jnp.minimum(position, last)[:, None]
  take = lambda x, at: None if x is None else jnp.take_along_axis(x, at, axis=1)
  one = draft.replace(
      tokens=take(draft.tokens, at),
      probs=take(draft.probs, at[..., None]),
      is_point_mass=take(draft.is_point_mass, at),
  )
  return draft_probs(one, target_probs.shape[-1], target_probs.dtype)[:, 0]
