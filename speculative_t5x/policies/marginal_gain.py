# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts that go on as long as more tokens are expected to pay.

Legend: rows, gamma (the most draft tokens per block), t1 (time of a target step
on one position).
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.policies import confidence
from speculative_t5x.policies import running_rate
from speculative_t5x.speculation import ranges


class _Doubt(NamedTuple):
  """A draft so far, and the bounds of its length."""

  num_drafted: jax.Array  # [rows] int32, its tokens
  # [rows] float32, log-probability that all of them are accepted.
  reach: jax.Array
  # [rows, gamma + 1] float32, the least log-probability with which a draft of
  # each length goes on.
  needed: jax.Array


@dataclasses.dataclass(frozen=True)
class MarginalGain(running_rate.RunningRate):
  """Stops a draft after a token if more tokens cost more than they gain.

  More draft tokens cost the time of their draft steps and, where the target
  call becomes wider, of a longer verification. That time is worth the tokens
  that decoding makes in it at the best fixed draft length, by Theorem 3.8.
  A further draft token gains a token if it is accepted, by the acceptance rate
  alpha of the row, and if all draft tokens before it are: the probability of
  that is the product of the draft model's probabilities to the power of
  `exponent`. The draft goes on if any number of further tokens pays. Where not
  even the best fixed length is faster than plain decoding, nothing is drafted.

  Attributes:
    exponent: Exponent of the draft model's probabilities, at least 0. Above 1,
      because draft models are surer of a token than they are right.

  For the other attributes see `running_rate.RunningRate`.
  """

  exponent: float = 1.5
  kind = 'marginal_gain'

  def __post_init__(self):
    super().__post_init__()
    ranges.check_settings(ranges.COEFFICIENT, exponent=self.exponent)

  def num_wanted(self, state, num_remaining, gamma: int) -> jax.Array:
    pays = jnp.argmax(self.expect(state, gamma).speeds, axis=1) > 0
    return jnp.where(pays, gamma, 0).astype(jnp.int32)

  def begin(self, state, num_drafted: jax.Array, gamma: int) -> _Doubt:
    # Once per draft: small operations take a while on each token.
    reach = jnp.zeros(num_drafted.shape, jnp.float32)
    return _Doubt(num_drafted, reach, self._needed(state, gamma))

  def _needed(self, state: running_rate.Tested, gamma: int) -> jax.Array:
    alpha, speeds = self.expect(state, gamma)
    times = self.times(gamma)
    more = np.arange(1, gamma + 1)
    gained = jnp.cumsum(alpha[:, None] ** more, axis=1)[:, None]
    after = np.arange(gamma + 1)[:, None] + more
    spent = times[np.minimum(after, gamma)] - times[:, None]
    spent = np.where(after <= gamma, spent, np.inf)
    speed = jnp.max(speeds, axis=1)[:, None, None]
    needed = jnp.min(speed * spent / gained, axis=2)
    # Below 0 if a wider target call was measured to take less time.
    return jnp.log(jnp.maximum(needed, 0))

  def continues(
      self, state, progress: _Doubt, logits, tokens, gamma: int
  ) -> tuple[jax.Array, _Doubt]:
    log_probs = confidence.token_log_probs(logits, tokens)
    progress = progress._replace(
        num_drafted=progress.num_drafted + 1,
        reach=progress.reach + self.exponent * log_probs,
    )
    # Of n draft tokens, counting this one, the bound of a draft of n.
    at = progress.num_drafted[:, None]
    needed = jnp.take_along_axis(progress.needed, at, axis=1)[:, 0]
    return progress.reach > needed, progress
