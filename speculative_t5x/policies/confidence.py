# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts that stop after a token of which the drafter was not sure.

The token is drafted and tested nevertheless. Dropping it for its own
probability would bias the outputs.
"""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import ranges


def token_log_probs(logits: jax.Array, tokens: jax.Array) -> jax.Array:
  """Return log-probabilities of tokens at temperature 1, [rows] float32."""
  own = jnp.take_along_axis(_log_probs(logits), tokens[:, None], axis=1)
  return own[:, 0]


def _log_probs(logits: jax.Array) -> jax.Array:
  return jax.nn.log_softmax(logits.astype(jnp.float32))


@dataclasses.dataclass(frozen=True)
class Confidence(draft_length.DraftsOn):
  """Stops a draft after a token whose probability is below a threshold.

  The probability is the drafter's at temperature 1, before top-k and the like,
  also where decoding is at another temperature: at argmax it is the confidence
  in the argmax.

  The threshold of each row follows the share of its draft tokens that are
  accepted: after each target call it moves by `tuning` times the difference of
  `acceptance` and that share, so that it settles where both are equal. Without
  tuning it stays.

  Attributes:
    threshold: The first threshold, in [0, 1].
    tuning: How fast it moves, at least 0; 0 for a fixed threshold.
    acceptance: The share of accepted draft tokens to aim at, in [0, 1].
  """

  threshold: float = 0.4
  tuning: float = 0.0
  acceptance: float = 0.8
  kind = 'confidence'
  recorded = ('threshold',)  # in the name
  is_constant = False

  def __post_init__(self):
    ranges.check_settings(
        ranges.RATE, threshold=self.threshold, acceptance=self.acceptance
    )
    ranges.check_settings(ranges.COEFFICIENT, tuning=self.tuning)

  @property
  def name(self) -> str:
    """Kind and numbers, for the record."""
    tuned = ('tuning', 'acceptance') if self.tuning else ()
    values = [getattr(self, x) for x in (*self.recorded, *tuned)]
    return f'{self.kind}({", ".join(f"{x:g}" for x in values)})'

  def init(self, rows: int) -> jax.Array:
    """Return the threshold of each row, [rows] float32."""
    return jnp.full((rows,), self.threshold, jnp.float32)

  def continues(
      self, state, progress, logits, tokens, gamma: int
  ) -> tuple[jax.Array, None]:
    return self.certainty(logits, tokens) >= state, progress

  def certainty(self, logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """Return the probability of the token, [rows]."""
    return jnp.exp(token_log_probs(logits, tokens))

  def update(self, state: jax.Array, outcome) -> jax.Array:
    # Not 0 / 0 where nothing was drafted; such rows are kept below.
    share = outcome.num_accepted / jnp.maximum(outcome.num_drafted, 1)
    moved = state + self.tuning * (self.acceptance - share)
    has_drafted = outcome.num_drafted > 0
    return jnp.where(has_drafted, jnp.clip(moved, 0, 1), state)


@dataclasses.dataclass(frozen=True)
class Entropy(Confidence):
  """Stops a draft after a token whose distribution has much entropy.

  The acceptance rate has a bound that falls with the entropy H of the drafter's
  distribution at temperature 1. It is estimated by 1 - sqrt(scale * H). The
  draft stops where this is below a threshold.

  Reference: Agrawal et al. (2024), arXiv:2410.18351.

  Attributes:
    scale: Factor of the entropy in nats, at least 0.

  For the other attributes see `Confidence`.
  """

  scale: float = 0.2
  kind = 'entropy'
  recorded = ('threshold', 'scale')

  def __post_init__(self):
    super().__post_init__()
    ranges.check_settings(ranges.COEFFICIENT, scale=self.scale)

  def certainty(self, logits: jax.Array, tokens: jax.Array) -> jax.Array:
    """Return the estimated bound, [rows]."""
    del tokens
    log_probs = _log_probs(logits)
    probs = jnp.exp(log_probs)
    # A forbidden token has probability 0 and log-probability -inf.
    entropy = -jnp.sum(jnp.where(probs > 0, probs * log_probs, 0), axis=-1)
    return 1 - jnp.sqrt(self.scale * jnp.maximum(entropy, 0))
