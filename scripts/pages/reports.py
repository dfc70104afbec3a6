# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Renders the reports in `results` from the records beside them."""

from collections.abc import Iterator
import pathlib

from scripts.pages import records
from speculative_t5x.paper import points
from speculative_t5x.paper import tables
from speculative_t5x.reports import methods_table
from speculative_t5x.tpu_aot import report


def render(results: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
  """Yields the path and the rendered text of each report."""
  for path in sorted(results.glob('tpu_preflight/*/tpu_preflight.json')):
    yield path.with_suffix('.md'), report.render(
        records.read_entry(path)
    ) + '\n'
  yield results / 'methods/methods.md', _methods(results) + '\n'
  yield results / 'paper/table2.md', _table_2(results) + '\n'
  yield results / 'paper/table3.md', _table_3(results) + '\n'


def _methods(results: pathlib.Path) -> str:
  paths = sorted((results / 'methods').glob('*.jsonl'))
  return methods_table.render({x.stem: records.read(x) for x in paths})


def _table_2(results: pathlib.Path) -> str:
  found = records.read(results / 'paper/table2.jsonl')
  return tables.tables_2_and_4(tables.pair_simulated(found))


def _table_3(results: pathlib.Path) -> str:
  names = 'walltime_bulletins.jsonl', 'walltime_multi30k.jsonl'
  found = [record for name in names for record in records.read(results / name)]
  return tables.table_3(points.alphas(found))
