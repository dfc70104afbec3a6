# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What run records contribute to Table 3 and to Figures 2, 3 and 4.

Legend: gamma (draft tokens per target call); c (time of a draft step over that
of a target step, Definition 3.7).
"""

from collections.abc import Callable, Sequence
import dataclasses
import math

from speculative_t5x import run_record
from speculative_t5x.reports import readings
from speculative_t5x.reports import runs


def curve_label(record: run_record.RunRecord) -> str:
  """Returns one label for all rates of simulated acceptance of a pair.

  Such runs also share it across temperatures. See `runs.label` for others.
  """
  if not readings.is_simulated(record):
    return runs.label(record)
  settings = runs.unusual_settings(record)
  return ', '.join([runs.pair_label(record), *settings, 'simulated'])


def alphas(
    records: Sequence[run_record.RunRecord],
) -> list[tuple[str, float, run_record.Alpha]]:
  """Returns the measured alphas for Table 3, one per label.

  Args:
    records: of any job; those without a measured alpha are left out.
  Returns:
    Label, temperature and the record's estimate of alpha.
  Raises:
    ValueError: for two alphas with the same label.
  """
  known = [record for record in records if record.alpha is not None]
  found = {}
  for record, name in zip(known, runs.labels(known), strict=True):
    entry = name, record.temperature, record.alpha
    _, _, first = found.setdefault(name, entry)
    if first.value != record.alpha.value:
      raise ValueError(
          f'{name} was measured twice, with alpha {first.value} and'
          f' {record.alpha.value}. Pass the records of one run alone, or'
          ' give another output folder.'
      )
  return list(found.values())


@dataclasses.dataclass(frozen=True)
class Point:
  """A measured run as a point in a figure of the paper.

  Attributes:
    label: see `runs.labels`.
    alpha: see `readings.alpha`.
    gamma: draft tokens per target call.
    cost_coefficient: c.
    tokens_per_call: committed tokens per target call.
    speedup: plain over speculative walltime.
    speedup_ci95: its 95 percent interval, None for too few batches.
    operations_factor: speculative over plain operations, None if not counted.
  """

  label: str
  alpha: float
  gamma: int
  cost_coefficient: float
  tokens_per_call: float
  speedup: float
  speedup_ci95: tuple[float, float] | None
  operations_factor: float | None


def from_records(
    records: Sequence[run_record.RunRecord],
    label: Callable[[run_record.RunRecord], str] = runs.label,
) -> list[Point]:
  """Returns one point per record that has the values of a point.

  Args:
    records: of any job. Left out are plain runs, and runs whose alpha, c,
      tokens per call or speedup was not measured or is not finite.
    label: returns the label of a record; see `runs.labels`.
  """
  complete = [record for record in records if _is_complete(record)]
  return [
      Point(
          label=name,
          alpha=readings.alpha(record),
          gamma=record.gamma,
          cost_coefficient=record.c,
          tokens_per_call=record.tokens_per_target_call,
          speedup=record.speedup,
          speedup_ci95=record.speedup_ci95,
          operations_factor=_finite(record.operations_factor),
      )
      for record, name in zip(
          complete, runs.labels(complete, label), strict=True
      )
  ]


def _is_complete(record: run_record.RunRecord) -> bool:
  needed = ('gamma', 'c', 'tokens_per_target_call', 'speedup')
  numbers = [readings.alpha(record), *(getattr(record, key) for key in needed)]
  return record.drafter is not None and None not in map(_finite, numbers)


def _finite(number: float | None) -> float | None:
  return number if number is not None and math.isfinite(number) else None
