# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts that stop after a token of which the drafter was not sure.

The token is drafted and tested nevertheless. Dropping it for its own
probability would bias the outputs.
"""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import ranges


def token_log_probs(logits: jax.Array, tokens: jax.Array) -> jax.Array:
  """Returns log-probabilities of tokens at temperature 1, [rows] float32.

  Args:
    logits: [rows, vocab].
    tokens: [rows] int32.
  """
  own = jnp.take_along_axis(_log_probs(logits), tokens[:, None], axis=1)
  return own[:, 0]


def _log_probs(logits: jax.Array) -> jax.Array:
  return jax.nn.log_softmax(logits.astype(jnp.float32))


@dataclasses.dataclass(frozen=True)
class _Stopping:
  """Stops a draft after a token whose certainty is below a threshold.

  The threshold of each row follows the share of its draft tokens that are
  accepted: after each target call it moves by `tuning` times the difference of
  `acceptance` and that share, so that it settles where both are equal. Without
  tuning it stays.

  Attributes:
    threshold: in [0, 1], the first one.
    tuning: at least 0; 0 for a fixed threshold.
    acceptance: in [0, 1], the share of accepted draft tokens to aim at.
  """

  threshold: float = 0.4
  tuning: float = 0.0
  acceptance: float = 0.8
  is_constant = False

  def __post_init__(self):
    ranges.check_settings(
        ranges.RATE, threshold=self.threshold, acceptance=self.acceptance
    )
    ranges.check_settings(ranges.COEFFICIENT, tuning=self.tuning)

  @property
  def name(self) -> str:
    """Kind and numbers, for the record."""
    tuned = (self.tuning, self.acceptance) if self.tuning else ()
    values = (self.threshold, *self.numbers(), *tuned)
    return f'{self.kind}({", ".join(f"{x:g}" for x in values)})'

  def numbers(self) -> tuple[float, ...]:
    """Returns the settings that a subclass adds, for its name."""
    return ()

  def init(self, rows: int) -> jax.Array:
    """Returns the threshold of each row, [rows] float32."""
    return jnp.full((rows,), self.threshold, jnp.float32)

  def num_wanted(
      self, state: jax.Array, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.num_wanted`."""
    return jnp.full_like(num_remaining, gamma)

  def begin(self, state: jax.Array, num_drafted: jax.Array, gamma: int) -> None:
    """See `contracts.DraftLengthPolicy.begin`."""

  def continues(
      self,
      state: jax.Array,
      progress: None,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> tuple[jax.Array, None]:
    """See `contracts.DraftLengthPolicy.continues`."""
    return self.certainty(logits, tokens) >= state, progress

  def update(self, state: jax.Array, outcome) -> jax.Array:
    """See `contracts.DraftLengthPolicy.update`."""
    share = outcome.num_accepted / jnp.maximum(outcome.num_drafted, 1)
    moved = state + self.tuning * (self.acceptance - share)
    has_drafted = outcome.num_drafted > 0
    return jnp.where(has_drafted, jnp.clip(moved, 0, 1), state)


@dataclasses.dataclass(frozen=True)
class Confidence(_Stopping):
  """Stops a draft after a token whose probability is below a threshold.

  The probability is the drafter's at temperature 1, before top-k and the like,
  also where decoding is at another temperature: at argmax it is the confidence
  in the argmax.

  Attributes:
    threshold: in [0, 1], the first one.
    tuning: at least 0, how fast the threshold follows the acceptance; 0 for a
      fixed threshold.
    acceptance: in [0, 1], the share of accepted draft tokens to aim at.
  """

  kind = 'confidence'

  def certainty(self, logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """Returns the probability of the token, [rows]."""
    return jnp.exp(token_log_probs(logits, tokens))


@dataclasses.dataclass(frozen=True)
class Entropy(_Stopping):
  """Stops a draft after a token whose distribution has much entropy.

  The acceptance rate has a bound that falls with the entropy H of the drafter's
  distribution at temperature 1. It is estimated by 1 - sqrt(scale * H). The
  draft stops where this is below a threshold.

  Reference: Agrawal et al. (2024), arXiv:2410.18351.

  Attributes:
    threshold: in [0, 1], the first one.
    tuning: At least 0, how fast the threshold follows the acceptance; 0 for a
      fixed threshold.
    acceptance: In [0, 1], the share of accepted draft tokens to aim at.
    scale: at least 0, per nat.
  """

  scale: float = 0.2
  kind = 'entropy'

  def __post_init__(self):
    super().__post_init__()
    ranges.check_settings(ranges.COEFFICIENT, scale=self.scale)

  def numbers(self) -> tuple[float, ...]:
    """Returns the scale."""
    return (self.scale,)

  def certainty(self, logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """Returns the estimated bound, [rows]."""
    del tokens
    log_probs = _log_probs(logits)
    probs = jnp.exp(log_probs)
    # A forbidden token has probability 0 and log-probability -inf.
    entropy = -jnp.sum(jnp.where(probs > 0, probs * log_probs, 0), axis=-1)
    return 1 - jnp.sqrt(self.scale * jnp.maximum(entropy, 0))
