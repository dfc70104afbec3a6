# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of `results`, named by their paths in it."""

from collections.abc import Sequence
import json
import pathlib
from typing import Any

from speculative_t5x.research import run_record
from speculative_t5x.research.reports import runs as runs_lib
from speculative_t5x.training import history

RESULTS = pathlib.Path(__file__).parents[2] / 'results'


def runs(*names: str, **settings: Any) -> list[run_record.RunRecord]:
  """Reads run records, those with the given values of their fields."""
  found = [x for name in names for x in runs_lib.read(RESULTS / name)]
  has = lambda record, key: getattr(record, key) == settings[key]
  return [x for x in found if all(has(x, key) for key in settings)]


def entry(name: str) -> dict[str, Any]:
  """Reads a file of one JSON object."""
  return json.loads((RESULTS / name).read_text())


def entries(name: str) -> list[dict[str, Any]]:
  """Reads a file of JSON objects, one per line."""
  # Not `splitlines`, which would also split at Unicode line separators.
  lines = (RESULTS / name).read_text().split('\n')
  return [json.loads(line) for line in lines if line]


def best_point(training: str) -> dict[str, Any]:
  """Reads the measures of a training's best checkpoint."""
  points = entry(f'training/{training}/{history.FILE_NAME}')
  return max(points, key=lambda point: point['score'])


def interval(bounds: Sequence[float] | None, form: str = '.2f') -> str:
  """Formats an interval, as in [1.70, 1.90]."""
  if bounds is None:
    return '-'
  low, high = (format(bound, form) for bound in bounds)
  return f'[{low}, {high}]'


def speedup(values: dict[str, Any]) -> str:
  """Formats a speedup and its interval, as in 1.80x [1.70, 1.90]."""
  return f'{values["speedup"]:.2f}x {interval(values["speedup_ci95"])}'
