# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The points of run records in Table 3 and in Figures 2, 3 and 4."""

from collections.abc import Sequence
import math
from typing import NamedTuple

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs


def pair_label(record: run_record.RunRecord) -> str:
  """Return the pair of a run by sizes and kinds, and its unusual settings.

  Runs of other gammas and temperatures share it, and so do all rates of a
  simulated acceptance. A checkpoint is named by its size, not by its folder.
  """
  words = f'{_name(record.drafter)} for {_name(record.target)}'
  if record.task:
    words = f'{record.task}: {words}'
  simulated = ['simulated'] if readings.is_simulated(record) else []
  return ', '.join([words, *runs.unusual_settings(record), *simulated])


def _name(model: readings.Model) -> str:
  """Return the kind and size of a checkpoint, or how the paper names it."""
  if model.checkpoint is not None and model.num_params is not None:
    kind = getattr(model, 'kind', '')  # a target has none
    kind = 'draft model' if kind == 'model' else kind.replace('_', ' ')
    return f'{kind} {readings.size(model.num_params)}'.lstrip()
  name = readings.model_name(model)
  size = name.removeprefix('t5_1_1_')
  if size == name:
    return name
  return f'T5 1.1 {size.upper() if size in ("xl", "xxl") else size}'


def alphas(
    records: Sequence[run_record.RunRecord],
) -> list[tuple[str, float, run_record.Alpha]]:
  """Return label, temperature and alpha of each pair, if it was measured.

  Raises:
    ValueError: for two alphas with the same label and temperature.
  """
  known = [record for record in records if record.alpha is not None]
  found = {}
  for record, name in zip(known, runs.labels(known, pair_label), strict=True):
    first = found.setdefault((name, record.temperature), record.alpha)
    if first.value != record.alpha.value:
      raise ValueError(
          f'{name}, T={record.temperature:g} was measured twice, with alpha'
          f' {first.value} and {record.alpha.value}. Pass the records of one'
          ' run alone, or give another output folder.'
      )
  return [(*key, estimate) for key, estimate in found.items()]


class Point(NamedTuple):
  """A measured run as a point in a figure of the paper; see `pair_label`."""

  label: str
  alpha: float
  run: run_record.RunRecord


def from_records(records: Sequence[run_record.RunRecord]) -> list[Point]:
  """Return one point per record with readable and finite values of a point."""
  readable = map(judgement.readable, records)
  complete = [record for record in readable if _is_complete(record)]
  names = runs.labels(complete, pair_label)
  return [*map(Point, names, map(readings.alpha, complete), complete)]


def _is_complete(record: run_record.RunRecord) -> bool:
  needed = ('gamma', 'c', 'tokens_per_target_call', 'speedup')
  values = [readings.alpha(record), *(getattr(record, key) for key in needed)]
  return record.drafter is not None and all(
      value is not None and math.isfinite(value) for value in values
  )
