# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft lengths by what they cost and gain with the rows that are decoded.

With many rows verification is bound by arithmetic: a block of eight then costs
several single steps, and a draft that pays at one row does not pay at 64. An
engine measures the costs in its first steps, and what is accepted all along,
and sets one cap for all rows at each return to the host.

Unlike with other policies, how long a row's drafts are depends on what else is
decoded. Its sample does not under a coupled rule, which an engine asks for.
"""

from collections.abc import Mapping
import dataclasses
import statistics

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import widths as widths_lib

GAMMA = 7  # the largest cap, unless a job says otherwise

_MEASURED = 5  # times that each cap is timed
_MARGIN = 0.03  # a change of cap must gain as much
# Returns to the host between two with the largest cap, without which nothing
# would be known of its draft tokens. Such a return may take twice as long.
_PROBE = 64
_DECAY = 0.98  # weight of what was accepted before the last return


@dataclasses.dataclass(frozen=True)
class ByLoad(draft_length.DraftsOn):
  """Wants at most as many draft tokens as an engine's `Load` says.

  Attributes:
    cap: int32 scalar; None outside of an engine, for as many as the drafter
      makes.
  """

  cap: jax.Array | None = None
  name = 'by_load'

  @property
  def is_constant(self) -> bool:
    """True if it always wants gamma draft tokens."""
    return self.cap is None

  def num_wanted(self, state, num_remaining, gamma: int) -> jax.Array:
    wanted = super().num_wanted(state, num_remaining, gamma)
    return wanted if self.cap is None else jnp.minimum(wanted, self.cap)


class Load:
  """Chooses the cap, from one return to the host to the next.

  The cap k with the most tokens per second is taken: 1 + A_1 + ... + A_k per
  step of a row, over the seconds of a step. A_i is the rate of target calls
  that accept a draft token at position i.

  Attributes:
    caps: Caps that are compared, ascending: each fills a width of verification.
    cap: The one that is taken.
  """

  def __init__(self, gamma: int):
    """Begin with nothing known, for drafts of at most gamma tokens."""
    self.caps = [width - 1 for width in widths_lib.of_block(gamma + 1)]
    self.cap = 0
    self._seconds = {cap: [] for cap in self.caps}
    self._calls = np.zeros(gamma)
    self._accepted = np.zeros(gamma)
    self._num_chosen = 0

  @property
  def is_measuring(self) -> bool:
    """True while steps are still timed."""
    return min(map(len, self._seconds.values())) < _MEASURED

  @property
  def costs(self) -> Mapping[int, float]:
    """Median seconds of a step by cap, once all are measured."""
    # NumPy's median takes 100 times as long, and each return asks for many.
    return {cap: statistics.median(x) for cap, x in self._seconds.items()}

  def choose(self) -> int:
    """Return the cap for the next steps."""
    if self.is_measuring:  # in turn, so that a busy moment hits all alike
      return min(self.caps, key=lambda cap: len(self._seconds[cap]))
    self._num_chosen += 1
    if self._num_chosen % _PROBE == 0:
      return self.caps[-1]
    best = max(self.caps, key=self.rate)
    if self.rate(best) > (1 + _MARGIN) * self.rate(self.cap):
      self.cap = best
    return self.cap

  def rate(self, cap: int) -> float:
    """Return the tokens per second and row that a cap is expected to give."""
    # Without a call nothing was accepted: 0 and not 0 / 0.
    accepted = self._accepted[:cap] / np.maximum(self._calls[:cap], 1e-9)
    return (1 + float(np.sum(accepted))) / self.costs[cap]

  def add(
      self,
      cap: int,
      num_calls: int,
      accepted_at: np.ndarray,
      seconds_per_step: float | None,
  ) -> None:
    """Add what the steps since the last return showed.

    By target calls of rows with the cap, [gamma] of these accepted a draft
    token at each position. Steps that were not timed have no seconds.
    """
    for total, new in (self._calls, num_calls), (self._accepted, accepted_at):
      new = np.broadcast_to(new, total.shape)[:cap]
      total[:cap] = _DECAY * total[:cap] + new
    if seconds_per_step is not None:
      self._seconds[cap].append(seconds_per_step)
