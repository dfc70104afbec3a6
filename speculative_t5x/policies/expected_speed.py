# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft lengths from a running acceptance rate: Theorem 3.8, row by row."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import widths


class Tested(NamedTuple):
  """Draft tokens of each row, of which older ones weigh less.

  Attributes:
    accepted: [rows] float32.
    tested: [rows] float32, accepted or rejected.
  """

  accepted: jax.Array
  tested: jax.Array


@dataclasses.dataclass(frozen=True)
class ExpectedSpeed:
  """Wants the number of draft tokens that is expected to be the fastest.

  With the acceptance rate alpha of a row so far, gamma draft tokens are
  expected to give (1 - alpha^(gamma + 1)) / (1 - alpha) tokens, in the time of
  gamma draft steps and a target call that is as wide as gamma needs.

  Reference: Leviathan et al. (2023), Theorem 3.8, arXiv:2211.17192v2, with the
  time of verification added.

  Attributes:
    c: time of a draft step over that of a target step, as the walltime job
      measures it.
    verify_cost_ratio: time of verifying a whole block over that of a target
      step on one position, likewise; the time of narrower ones is interpolated.
    prior_alpha: acceptance rate in [0, 1] to begin with.
    prior_weight: above 0, how many draft tokens that counts for.
    decay: in [0, 1], the weight of what was tested before, per target call.
  """

  c: float
  verify_cost_ratio: float
  prior_alpha: float = 0.75
  prior_weight: float = 4.0
  decay: float = 0.95
  is_constant = False

  def __post_init__(self):
    ranges.check_coefficient('c', self.c)
    ranges.check_coefficient('verify_cost_ratio', self.verify_cost_ratio)
    ranges.check_rates('prior_alpha', np.asarray(self.prior_alpha))
    ranges.check_rates('decay', np.asarray(self.decay))
    ranges.check(
        'prior_weight',
        np.asarray(self.prior_weight),
        0 < self.prior_weight < np.inf,
        'be finite and above 0',
    )

  @property
  def name(self) -> str:
    """Kind and numbers, for the record."""
    return f'expected_speed({self.c:.3g}, {self.verify_cost_ratio:.3g})'

  def init(self, rows: int) -> Tested:
    """Returns that nothing was tested."""
    nothing = jnp.zeros((rows,), jnp.float32)
    return Tested(nothing, nothing)

  def num_wanted(
      self, state: Tested, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.num_wanted`."""
    weight = self.prior_weight
    prior = self.prior_alpha * weight
    alpha = (state.accepted + prior) / (state.tested + weight)
    # The sum of alpha^i for i from 0 to gamma is the expected tokens.
    powers = alpha[:, None] ** jnp.arange(gamma + 1, dtype=jnp.float32)
    speeds = jnp.cumsum(powers, axis=1) / jnp.asarray(self.times(gamma))
    return jnp.argmax(speeds, axis=1).astype(jnp.int32)

  def times(self, gamma: int) -> np.ndarray:
    """Returns the time of a block with 0 to gamma draft tokens, in t1.

    Args:
      gamma: the most draft tokens.
    Returns:
      [gamma + 1] float32, in target steps on one position.
    """
    compiled = np.array(widths.of_block(gamma + 1))
    lengths = np.arange(gamma + 1)
    width = compiled[np.searchsorted(compiled, lengths + 1)]
    per_position = (self.verify_cost_ratio - 1) / gamma
    times = lengths * self.c + 1 + (width - 1) * per_position
    return times.astype(np.float32)

  def continues(
      self, state: Tested, logits: jax.Array, tokens: jax.Array
  ) -> jax.Array:
    """See `contracts.DraftLengthPolicy.continues`."""
    return contracts.draft_on(logits, tokens)

  def update(self, state: Tested, outcome) -> Tested:
    """See `contracts.DraftLengthPolicy.update`."""
    after = Tested(
        state.accepted * self.decay + outcome.num_accepted,
        state.tested * self.decay + outcome.num_tested,
    )
    # A row that has ended keeps its state.
    keep = lambda new, old: jnp.where(outcome.is_active, new, old)
    return jax.tree.map(keep, after, state)
