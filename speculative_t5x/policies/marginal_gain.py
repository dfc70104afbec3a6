# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts that go on as long as one more token is expected to pay.

Legend: rows, gamma (the most draft tokens per block), t1 (time of a target step
on one position).
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.policies import confidence
from speculative_t5x.policies import running_rate
from speculative_t5x.speculation import ranges


class Progress(NamedTuple):
  """What is known of a draft.

  Attributes:
    num_drafted: [rows] int32, its tokens.
    reach: [rows] float32, the probability that all of them are accepted.
  """

  num_drafted: jax.Array
  reach: jax.Array


@dataclasses.dataclass(frozen=True)
class MarginalGain(running_rate.RunningRate):
  """Stops a draft after a token if more tokens cost more than they gain.

  More draft tokens take their draft steps and, where the target call becomes
  wider, longer verification. In that time, decoding would otherwise make as
  many tokens as its speed says, which is that of the best fixed length by
  Theorem 3.8. They are gained if they are accepted, each with the acceptance
  rate alpha of the row, and if all tokens before them are: the probability of
  that is the product of the draft model's probabilities to the power of
  `exponent`. The draft goes on if any number of further tokens pays. Where not
  even the best fixed length is faster than plain decoding, nothing is drafted.

  Attributes:
    exponent: at least 0. Above 1, because draft models are surer of a token
      than they are right.

  For the other attributes see `running_rate.RunningRate`.
  """

  exponent: float = 1.5
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

  def begin(self, num_drafted: jax.Array) -> Progress:
    """See `contracts.DraftLengthPolicy.begin`."""
    return Progress(num_drafted, jnp.ones(num_drafted.shape, jnp.float32))

  def continues(
      self,
      state: running_rate.Tested,
      progress: Progress,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> tuple[jax.Array, Progress]:
    """See `contracts.DraftLengthPolicy.continues`."""
    probs = confidence.token_probs(logits, tokens)
    progress = Progress(
        progress.num_drafted + 1, progress.reach * probs**self.exponent
    )
    alpha, speeds = self.expect(state, gamma)
    lengths = jnp.arange(gamma + 1, dtype=jnp.int32)[None]
    more = lengths - progress.num_drafted[:, None]
    # alpha + alpha^2 + ... for each length past the present one.
    powers = jnp.where(more > 0, alpha[:, None] ** more, 0)
    gained = progress.reach[:, None] * jnp.cumsum(powers, axis=1)
    times = jnp.asarray(self.times(gamma))
    spent = times - jnp.take(times, progress.num_drafted, mode='clip')[:, None]
    pays = gained > jnp.max(speeds, axis=1, keepdims=True) * spent
    return jnp.any(pays & (more > 0), axis=1), progress
