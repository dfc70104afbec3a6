# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts that stop after a token of which the drafter was not sure.

The token is drafted and tested nevertheless. Dropping it for its own
probability would bias the outputs.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class Confidence:
  """Stops a draft after a token whose probability is below a threshold.

  The probability is the drafter's at temperature 1, before top-k and the like,
  also where decoding is at another temperature: at argmax it is the confidence
  in the argmax.

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
    ranges.check_rates('threshold', np.asarray(self.threshold))
    ranges.check_rates('acceptance', np.asarray(self.acceptance))
    ranges.check_coefficient('tuning', self.tuning)

  @property
  def name(self) -> str:
    """Kind and numbers, for the record."""
    tuned = f', {self.tuning:g}, {self.acceptance:g}' if self.tuning else ''
    return f'confidence({self.threshold:g}{tuned})'

  def init(self, rows: int) -> jax.Array:
    """Returns the threshold of each row, [rows] float32."""
    return jnp.full((rows,), self.threshold, jnp.float32)

  def num_wanted(
      self, state: jax.Array, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.num_wanted`."""
    return jnp.full_like(num_remaining, gamma)

  def continues(
      self, state: jax.Array, logits: jax.Array, tokens: jax.Array
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.continues`."""
    log_probs = jax.nn.log_softmax(logits.astype(jnp.float32))
    own = jnp.take_along_axis(log_probs, tokens[:, None], axis=1)[:, 0]
    return jnp.exp(own) >= state

  def update(self, state: jax.Array, outcome) -> jax.Array:
    """See `contracts.DraftLengthPolicy.update`."""
    return tuned(state, outcome, self.tuning, self.acceptance)


@dataclasses.dataclass(frozen=True)
class Entropy:
  """Stops a draft after a token whose distribution has much entropy.

  A bound of the acceptance rate follows from the entropy H of the drafter's
  distribution at temperature 1: about 1 - sqrt(scale * H). The draft stops
  where it is below a threshold, which is tuned as in `Confidence`.

  Reference: Agrawal et al. (2024), arXiv:2410.18351.

  Attributes:
    threshold: in [0, 1], the first one.
    scale: at least 0, per nat.
    tuning: see `Confidence`.
    acceptance: likewise.
  """

  threshold: float = 0.4
  scale: float = 0.2
  tuning: float = 0.0
  acceptance: float = 0.8
  is_constant = False

  def __post_init__(self):
    ranges.check_rates('threshold', np.asarray(self.threshold))
    ranges.check_rates('acceptance', np.asarray(self.acceptance))
    ranges.check_coefficient('scale', self.scale)
    ranges.check_coefficient('tuning', self.tuning)

  @property
  def name(self) -> str:
    """Kind and numbers, for the record."""
    tuned = f', {self.tuning:g}, {self.acceptance:g}' if self.tuning else ''
    return f'entropy({self.threshold:g}, {self.scale:g}{tuned})'

  def init(self, rows: int) -> jax.Array:
    """Returns the threshold of each row, [rows] float32."""
    return jnp.full((rows,), self.threshold, jnp.float32)

  def num_wanted(
      self, state: jax.Array, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.num_wanted`."""
    return jnp.full_like(num_remaining, gamma)

  def continues(
      self, state: jax.Array, logits: jax.Array, tokens: jax.Array
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.continues`."""
    log_probs = jax.nn.log_softmax(logits.astype(jnp.float32))
    probs = jnp.exp(log_probs)
    # A forbidden token has probability 0 and log-probability -inf.
    entropy = -jnp.sum(jnp.where(probs > 0, probs * log_probs, 0), axis=-1)
    return 1 - jnp.sqrt(self.scale * jnp.maximum(entropy, 0)) >= state

  def update(self, state: jax.Array, outcome) -> jax.Array:
    """See `contracts.DraftLengthPolicy.update`."""
    return tuned(state, outcome, self.tuning, self.acceptance)


def tuned(
    threshold: jax.Array, outcome, tuning: float, acceptance: float
) -> jax.Array:
  """Returns the thresholds after a step, [rows] float32 in [0, 1].

  Args:
    threshold: [rows].
    outcome: `outcome.Outcome` of the step.
    tuning: see `Confidence`.
    acceptance: see `Confidence`.
  """
  share = outcome.num_accepted / jnp.maximum(outcome.num_drafted, 1)
  moved = threshold + tuning * (acceptance - share)
  has_drafted = outcome.num_drafted > 0
  return jnp.where(has_drafted, jnp.clip(moved, 0, 1), threshold)
