# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts that go on as long as one more token is expected to pay.

Legend: rows, gamma (the most draft tokens per block), t1 (time of a target step
on one position).
"""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.policies import confidence
from speculative_t5x.policies import running_rate
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class MarginalGain(running_rate.RunningRate):
  """Stops a draft after a token if the next one costs more than it gains.

  One more draft token takes c, and its part of the time of verification. In
  that time, decoding would otherwise make as many tokens as its speed says,
  which is that of the best fixed length by Theorem 3.8. The token is gained if
  it is accepted and if all tokens before it are: it is expected with alpha
  times the probability of the last token to the power of `exponent`. Where not
  even the best length is faster than plain decoding, nothing is drafted.

  Attributes:
    exponent: at least 0. Above 1, because draft models are surer of a token
      than they are right, and because one probability stands for those of all
      tokens before.

  For the other attributes see `running_rate.RunningRate`.
  """

  exponent: float = 2.0
  kind = 'marginal_gain'

  def __post_init__(self):
    super().__post_init__()
    ranges.check_coefficient('exponent', self.exponent)

  def num_wanted(
      self,
      state: running_rate.Tested,
      num_remaining: jax.Array,
      gamma: int,
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.num_wanted`."""
    pays = jnp.argmax(self.expect(state, gamma).speeds, axis=1) > 0
    return jnp.where(pays, gamma, 0).astype(jnp.int32)

  def continues(
      self,
      state: running_rate.Tested,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.continues`."""
    expected = self.expect(state, gamma)
    times = self.times(gamma)
    cost = (times[-1] - times[1]) / max(gamma - 1, 1)
    probs = confidence.token_probs(logits, tokens)
    gained = expected.alpha * probs**self.exponent
    return gained >= jnp.max(expected.speeds, axis=1) * cost
