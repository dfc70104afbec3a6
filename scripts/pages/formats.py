# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Formats numbers for the pages."""

from collections.abc import Iterable, Sequence

from scripts.pages import records
from speculative_t5x.research import run_record


def number(value: float, form: str = '.2f') -> str:
  """Formats a number, by default with two decimals."""
  return format(value, form)


def speedup(record: run_record.RunRecord | records.Entry) -> str:
  """Formats a speedup, as in 1.80x."""
  return f'{record.speedup:.2f}x'


def speedup_and_interval(
    record: run_record.RunRecord | records.Entry,
) -> str:
  """Formats a speedup and its interval, as in 1.80x [1.70, 1.90]."""
  return f'{speedup(record)} {interval(record.speedup_ci95)}'


def interval(bounds: Sequence[float] | None, form: str = '.2f') -> str:
  """Formats an interval, as in [1.70, 1.90]."""
  if bounds is None:
    return '-'
  low, high = (format(bound, form) for bound in bounds)
  return f'[{low}, {high}]'


def alpha(record: run_record.RunRecord) -> str:
  """Formats alpha and its interval, as in 0.893 [0.884, 0.903]."""
  estimate = record.alpha
  return f'{estimate.value:.3f} {interval(estimate.ci95, ".3f")}'


def ratio(measured: records.Entry | None) -> str:
  """Formats a benchmark's ratio and its interval."""
  if measured is None:
    return '-'
  return f'{measured.ratio:.2f} {interval(measured.ci95)}'


def span(values: Iterable[float], form: str = '.2f') -> str:
  """Formats the range of several values, as in 0.84 to 0.98."""
  values = sorted(values)
  low, high = format(values[0], form), format(values[-1], form)
  return low if low == high else f'{low} to {high}'


def millions(count: float) -> str:
  """Formats a number of parameters, as in 10.6M."""
  return f'{count / 1e6:.1f}M'


def percent(share: float) -> str:
  """Formats a fraction, as in 6 percent."""
  return f'{100 * share:.0f} percent'
