# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of `results`, named by their paths in it."""

import pathlib
from typing import Any

from speculative_t5x.research import run_record
from speculative_t5x.research.reports import runs as runs_lib

RESULTS = pathlib.Path(__file__).parents[2] / 'results'


def runs(*names: str, **settings: Any) -> list[run_record.RunRecord]:
  """Read run records, those with the given values of their fields."""
  found = [x for name in names for x in runs_lib.read(RESULTS / name)]
  has = lambda record, key: getattr(record, key) == settings[key]
  return [x for x in found if all(has(x, key) for key in settings)]
