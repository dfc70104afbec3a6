# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft lengths from a running acceptance rate: Theorem 3.8, row by row."""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.policies import running_rate
from speculative_t5x.speculation import draft_length


@dataclasses.dataclass(frozen=True)
class ExpectedSpeed(running_rate.RunningRate, draft_length.DraftsOn):
  """Wants the number of draft tokens that is expected to be the fastest.

  With the acceptance rate alpha of a row so far, gamma draft tokens are
  expected to give (1 - alpha^(gamma + 1)) / (1 - alpha) tokens, in the time of
  gamma draft steps and a target call that is as wide as gamma needs.

  For the attributes see `running_rate.RunningRate`.
  """

  kind = 'expected_speed'

  def num_wanted(self, state, num_remaining, gamma: int) -> jax.Array:
    speeds = self.expect(state, gamma).speeds
    return jnp.argmax(speeds, axis=1).astype(jnp.int32)
