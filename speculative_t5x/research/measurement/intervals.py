# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimates from measurements, with their 95 percent intervals."""

from collections.abc import Sequence
import enum
import math

import numpy as np
from numpy import typing as npt

from speculative_t5x.research import run_record

_NUM_RESAMPLES = 10_000
_MIN_PAIRS = 6
_MAX_INDICES = 2**22  # resampled at a time, 32 MiB


class Verdict(enum.StrEnum):
  """What the interval of a ratio of speeds says of the ratio."""

  FASTER = 'faster'
  SLOWER = 'slower'
  NO_DIFFERENCE = 'no difference shown'
  NO_INTERVAL = 'no interval'


def verdict(interval: Sequence[float] | None) -> Verdict:
  """Return whether a ratio of speeds is above 1, as far as its interval tells.

  The bounds are compared as they are printed, with two decimals, so that the
  verdict never contradicts a printed interval that includes 1.
  """
  if interval is None:
    return Verdict.NO_INTERVAL
  low, high = (round(bound, 2) for bound in interval)
  if low > 1:
    return Verdict.FASTER
  return Verdict.SLOWER if high < 1 else Verdict.NO_DIFFERENCE


def ratio_interval(
    numerators: npt.ArrayLike, denominators: npt.ArrayLike
) -> tuple[float, float] | None:
  """Compute the 95 percent interval of a ratio of sums by a paired bootstrap.

  The 2.5 and 97.5 percent quantiles of the resampled ratios are too narrow for
  few pairs: with 8 pairs they cover the true ratio in 87 to 90 percent of
  cases. The quantiles used here lie further out. They account for Student's t
  being wider than the normal distribution, and for the bootstrap's
  underestimate of the spread: the expanded percentile interval of Hesterberg
  (2015), What Teachers Should Know about the Bootstrap, arXiv:1411.5279.

  Args:
    numerators: [pairs] float.
    denominators: [pairs] float, above 0.
  Returns:
    The lower and upper bound. None for fewer than 6 pairs: their smallest and
    largest values enclose the true value in less than 95 percent of cases (at
    most 1 - 2^(1 - pairs)).
  """
  numerators, denominators = np.stack([numerators, denominators]).astype(float)
  num_pairs = len(numerators)
  if num_pairs < _MIN_PAIRS:
    return None
  from scipy import special  # slow to import; most jobs make no interval

  rng = np.random.default_rng(0)
  chunk = max(_MAX_INDICES // num_pairs, 1)  # the stream does not depend on it
  ratios = []
  for start in range(0, _NUM_RESAMPLES, chunk):
    shape = (min(chunk, _NUM_RESAMPLES - start), num_pairs)
    chosen = rng.integers(0, num_pairs, shape)
    ratios.append(
        numerators[chosen].sum(axis=1) / denominators[chosen].sum(axis=1)
    )
  # 0.025 for many pairs.
  widened = math.sqrt(num_pairs / (num_pairs - 1))
  tail = special.ndtr(widened * special.stdtrit(num_pairs - 1, 0.025))
  low, high = np.quantile(np.concatenate(ratios), (tail, 1 - tail))
  return float(low), float(high)


def estimate_alpha(betas_by_text: Sequence[npt.ArrayLike]) -> run_record.Alpha:
  """Estimate alpha on text that the target wrote: Corollary 3.6.

  The bootstrap resamples whole texts, since tokens of one text are correlated.

  Args:
    betas_by_text: One array per text, [tokens] float in [0, 1], the
      `acceptance_probability` of each token given the text before it.
  """
  texts = [np.asarray(betas, np.float64) for betas in betas_by_text]
  sums = np.array([betas.sum() for betas in texts if betas.size])
  counts = np.array([betas.size for betas in texts if betas.size])
  return run_record.Alpha(
      float(sums.sum() / counts.sum()),
      ratio_interval(sums, counts),
      int(counts.sum()),
  )
