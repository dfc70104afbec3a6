# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Expectations of a row: its acceptance rate so far, and the costs of drafts.

Legend: rows, gamma (the most draft tokens per block), t1 (time of a target step
on one position).
"""

from collections.abc import Mapping
import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import widths


class Tested(NamedTuple):
  """Draft tokens of each row, of which older ones weigh less."""

  accepted: jax.Array  # [rows] float32
  tested: jax.Array  # [rows] float32, accepted or rejected


class Expected(NamedTuple):
  """The expectations of a row."""

  alpha: jax.Array  # [rows] float32, acceptance rate
  # [rows, gamma + 1] float32, tokens per t1 with 0 to gamma draft tokens per
  # block, by Theorem 3.8.
  speeds: jax.Array


@dataclasses.dataclass(frozen=True)
class RunningRate:
  """The acceptance rate of each row, and the times of a draft.

  Attributes:
    c: Time of a draft step over that of a target step, as the walltime job
      measures it.
    verify_cost_ratio: Time of verifying a whole block over t1, likewise; the
      time of narrower target calls is interpolated. Or such ratios by the width
      of the target call, as {2: 1.4, 4: 1.5, 8: 1.7}; what lies between is
      interpolated. It is kept as pairs.
    prior_alpha: Acceptance rate in [0, 1] to begin with.
    prior_weight: Above 0, how many draft tokens that counts for.
    decay: Weight in [0, 1] of what was tested before, per target call.
  """

  c: float
  verify_cost_ratio: float | Mapping[int, float]
  prior_alpha: float = 0.75
  prior_weight: float = 8.0
  decay: float = 0.95
  is_constant = False

  def __post_init__(self):
    ratios = self.verify_cost_ratio
    if isinstance(ratios, tuple) and np.ndim(ratios) == 2:  # as it is kept
      ratios = dict(ratios)
    ranges.check_settings(_RATIOS, verify_cost_ratio=ratios)
    if isinstance(ratios, Mapping):  # not hashable
      ratios = tuple(sorted(ratios.items()))
    object.__setattr__(self, 'verify_cost_ratio', ratios)
    ranges.check_settings(ranges.COEFFICIENT, c=self.c)
    ranges.check_settings(
        ranges.RATE, prior_alpha=self.prior_alpha, decay=self.decay
    )
    ranges.check_settings(ranges.POSITIVE, prior_weight=self.prior_weight)

  @property
  def name(self) -> str:
    """Kind, costs, and what is not the default, for the record."""
    ratios = self.verify_cost_ratio
    if isinstance(ratios, tuple):
      pairs = ', '.join(f'{width}: {ratio:g}' for width, ratio in ratios)
      ratio = f'{{{pairs}}}'
    else:
      ratio = f'{ratios:g}'
    others = [
        f'{field.name}={getattr(self, field.name):g}'
        for field in dataclasses.fields(self)
        if field.default not in (dataclasses.MISSING, getattr(self, field.name))
    ]
    return f'{self.kind}({", ".join([f"{self.c:g}", ratio, *others])})'

  def init(self, rows: int) -> Tested:
    """Return that nothing was tested."""
    nothing = jnp.zeros((rows,), jnp.float32)
    return Tested(nothing, nothing)

  def update(self, state: Tested, outcome) -> Tested:
    after = Tested(
        state.accepted * self.decay + outcome.num_accepted,
        state.tested * self.decay + outcome.num_tested,
    )
    # A row that has ended keeps its state.
    keep = lambda new, old: jnp.where(outcome.is_active, new, old)
    return jax.tree.map(keep, after, state)

  def expect(self, state: Tested, gamma: int) -> Expected:
    """Return what is expected of each row.

    Reference: Leviathan et al. (2023), Theorem 3.8, arXiv:2211.17192v2, with
      the time of verification added.
    """
    weight = self.prior_weight
    prior = self.prior_alpha * weight
    alpha = (state.accepted + prior) / (state.tested + weight)
    # The sum of alpha^i for i from 0 to gamma is the expected tokens.
    powers = alpha[:, None] ** jnp.arange(gamma + 1, dtype=jnp.float32)
    tokens = jnp.cumsum(powers, axis=1)
    return Expected(alpha, tokens / jnp.asarray(self.times(gamma)))

  def times(self, gamma: int) -> np.ndarray:
    """Return the times of blocks of 0 to gamma draft tokens, in t1, float32.

    Raises:
      ValueError: for a gamma whose target calls are wider than the ratios tell.
    """
    compiled = np.array(widths.of_block(gamma + 1))
    known, ratios = np.transpose(self._pairs(gamma + 1))
    if known[-1] < gamma + 1:
      raise ValueError(
          f'verify_cost_ratio ends at width {known[-1]:g}, but gamma {gamma}'
          f' has target calls of width {gamma + 1}. Lower gamma to'
          f' {known[-1] - 1:g}, or measure this width by the walltime job.'
      )
    # A draft of k tokens is verified at the least compiled width above k.
    lengths = np.arange(gamma + 1)
    at_width = compiled[np.searchsorted(compiled, lengths + 1)]
    times = lengths * self.c + np.interp(at_width, known, ratios)
    return times.astype(np.float32)

  def _pairs(self, width: int) -> tuple[tuple[int, float], ...]:
    """Return widths of target calls and their times in t1, ascending."""
    ratios = self.verify_cost_ratio
    if not isinstance(ratios, tuple):
      ratios = ((width, ratios),)
    return ((1, 1.0), *ratios)


def _are_ratios(ratios: object) -> bool:
  """Return whether these are a number, or numbers by width."""
  if not isinstance(ratios, Mapping):
    return ranges.COEFFICIENT.includes(ratios)
  return len(ratios) > 0 and all(
      ranges.COUNT.includes(width)
      and width > 1
      and ranges.COEFFICIENT.includes(ratio)
      for width, ratio in ratios.items()
  )


_RATIOS = ranges.Kind(
    f'{ranges.COEFFICIENT.allowed}, or be such numbers by the widths of target'
    ' calls, which are whole and above 1, as the walltime job prints them: {2:'
    ' 1.4, 4: 1.5, 8: 1.7}',
    object,
    _are_ratios,
)
