# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores that ended hypotheses of a beam search compete by, and its end.

Legend: examples, beams (hypotheses per example).
"""

from typing import ClassVar

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts


class Scoring:
  """A way to score hypotheses: a pytree, whose values compile nothing anew.

  Attributes:
    limit_ends: Whether the limit ends hypotheses as an end of sequence does.
  """

  limit_ends: ClassVar[bool]

  def log_probs(self, logits: jax.Array) -> jax.Array:
    """Return the log-probabilities of tokens, [..., vocab] float32."""
    return jax.nn.log_softmax(logits.astype(jnp.float32))

  def ends(
      self, is_end: jax.Array, is_last: jax.Array, beams: int
  ) -> jax.Array:
    """Return which candidates join the ended hypotheses.

    Args:
      is_end: [examples, candidates] bool, which ones end, the best one first.
      is_last: [examples] bool, whether the step is the last one that there may
        be.
      beams: Hypotheses per example (static).
    """

  def score(self, sums: jax.Array, num_tokens: jax.Array) -> jax.Array:
    """Return the scores of ended hypotheses, [examples, any].

    Args:
      sums: [examples, any] float32, log-probabilities.
      num_tokens: int32, broadcastable to the sums; tokens of each, the end
        included.
    """
    return sums / self._divisor(num_tokens)

  def bound(
      self, live: jax.Array, num_tokens: jax.Array, limits: jax.Array
  ) -> jax.Array:
    """Return the score that live hypotheses may still get, [examples].

    Args:
      live: [examples] float32, the best log-probability of one.
      num_tokens: [examples] int32, its tokens.
      limits: [examples] int32, the most that it may have.
    """

  def stops(self, ended: jax.Array, bound: jax.Array) -> jax.Array:
    """Return whether ended scores let a search stop at a bound."""


@struct.dataclass
class BrevityPenalty(Scoring):
  """T5X's scores: log-probabilities over ((5 + tokens) / 6) ** penalty.

  Attributes:
    brevity_penalty: float32 scalar of at least 0, T5X's `alpha`.
    min_log_prob: float32 scalar. A search stops once no live hypothesis has as
      large a log-probability.
  """

  limit_ends: ClassVar[bool] = False

  brevity_penalty: jax.Array
  min_log_prob: jax.Array | float = -jnp.inf

  def ends(
      self, is_end: jax.Array, is_last: jax.Array, beams: int
  ) -> jax.Array:
    return is_end  # at any rank

  def bound(self, live, num_tokens, limits) -> jax.Array:
    # No live hypothesis gets better than its sum over the largest penalty. T5X
    # takes that of a length which no hypothesis reaches.
    bound = live / self._divisor(limits + 1)
    return jnp.where(live < self.min_log_prob, -jnp.inf, bound)

  def stops(self, ended: jax.Array, bound: jax.Array) -> jax.Array:
    return ended > bound

  def _divisor(self, num_tokens: jax.Array) -> jax.Array:
    base = (5.0 + num_tokens.astype(jnp.float32)) / 6.0
    return jnp.power(base, self.brevity_penalty)


@struct.dataclass
class LengthPenalty(Scoring):
  """Hugging Face's scores: log-probabilities over tokens ** penalty.

  As `generate` of transformers 4.57 with `early_stopping=False`, which stops by
  the present length: with a penalty above 0, a live hypothesis might still
  become better.

  Attributes:
    length_penalty: float32 scalar, its `length_penalty`.
    num_forced: int32 scalar. Tokens that are forced before each hypothesis and
      are no part of it. Its length has them.
    forbidden: Ids that are never written; logits are not masked yet (static).
  """

  limit_ends: ClassVar[bool] = True

  length_penalty: jax.Array
  num_forced: jax.Array | int = 0
  forbidden: tuple[int, ...] = struct.field(pytree_node=False, default=())

  def log_probs(self, logits: jax.Array) -> jax.Array:
    # What others may not write keeps its share of the probability.
    return contracts.mask(super().log_probs(logits), self.forbidden)

  def ends(
      self, is_end: jax.Array, is_last: jax.Array, beams: int
  ) -> jax.Array:
    # Only the best ones may end, as many as beams. At the limit all of them do.
    is_best = jnp.arange(is_end.shape[1]) < beams
    return (is_end | is_last[:, None]) & is_best

  def bound(self, live, num_tokens, limits) -> jax.Array:
    return live / self._divisor(num_tokens)

  def stops(self, ended: jax.Array, bound: jax.Array) -> jax.Array:
    return ended >= bound

  def _divisor(self, num_tokens: jax.Array) -> jax.Array:
    # A length of 0, of what is not there, makes 0 or infinity, never NaN.
    length = (num_tokens + self.num_forced).astype(jnp.float32)
    return jnp.power(length, self.length_penalty)
