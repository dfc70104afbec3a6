# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The values of run records as texts in the cells of tables."""

from collections.abc import Sequence

from speculative_t5x.research import run_record

MISSING = '-'


def number(value: float | None, decimals: int = 2) -> str:
  """Return a number with a fixed count of decimals."""
  return MISSING if value is None else f'{value:.{decimals}f}'


def interval(bounds: Sequence[float] | None, decimals: int = 2) -> str:
  """Return the bounds of an interval, in brackets."""
  if bounds is None:
    return MISSING
  low, high = (number(bound, decimals) for bound in bounds)
  return f'[{low}, {high}]'


def speedup(
    record: run_record.RunRecord | run_record.Reference | None,
) -> str:
  """Return the speedup of a run, with its interval if there is one."""
  if record is None:
    return MISSING
  return estimate(record.speedup, record.speedup_ci95)


def estimate(
    value: float | None,
    bounds: Sequence[float] | None,
    decimals: int = 2,
) -> str:
  """Return a value, with its interval if there is one."""
  if value is None or bounds is None:
    return number(value, decimals)
  return f'{number(value, decimals)} {interval(bounds, decimals)}'


def count(value: int | None) -> str:
  """Return a whole number as it is."""
  return MISSING if value is None else str(value)
