# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of `results`, named by their paths in it."""

import json
import pathlib
from typing import Any

from speculative_t5x.research import run_record
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import runs as runs_lib

RESULTS = pathlib.Path(__file__).parents[2] / 'results'


def runs(*names: str, **settings: Any) -> list[run_record.RunRecord]:
  """Read run records, those with the given values of their fields."""
  found = [x for name in names for x in runs_lib.read(RESULTS / name)]
  has = lambda record, key: getattr(record, key) == settings[key]
  return [x for x in found if all(has(x, key) for key in settings)]


def entries(name: str) -> list[dict[str, Any]]:
  """Read a file of JSON objects, one per line."""
  # Not `splitlines`, which would also split at Unicode line separators.
  lines = (RESULTS / name).read_text().split('\n')
  return [json.loads(line) for line in lines if line]


def entry(name: str) -> dict[str, Any]:
  """Read a file of one JSON object."""
  return json.loads((RESULTS / name).read_text())


def measured(values: dict[str, Any], key: str) -> str:
  """Format a number of a record and its interval, as in 1.80 [1.70, 1.90]."""
  interval = values.get(f'{key}_ci95', values.get('ci95'))
  return f'{values[key]:.2f} {cells.interval(interval)}'
