# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Renders the reports in `results` from the records beside them."""

from collections.abc import Iterator
import contextlib
import io
import pathlib
import tempfile

from scripts.pages import records
from speculative_t5x.jobs import paper
from speculative_t5x.paper import published
from speculative_t5x.paper import tables
from speculative_t5x.tpu_aot import report


def render(results: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
  """Yields the path and the rendered text of each report."""
  for path in sorted(results.glob('tpu_preflight/*/tpu_preflight.json')):
    yield path.with_suffix('.md'), report.render(
        records.read_entry(path)
    ) + '\n'
  yield results / 'paper/table2.md', _table_2(results) + '\n'
  yield results / 'paper/table3.md', _table_3(results)


def _table_2(results: pathlib.Path) -> str:
  found = records.read(results / 'paper/table2.jsonl')
  return tables.tables_2_and_4(
      [
          (
              row,
              found(
                  draft=row.draft,
                  temperature=row.temperature,
                  gamma=row.gamma,
                  simulated_acceptance=row.alpha,
              ),
          )
          for row in published.TABLES_2_AND_4
      ]
  )


def _table_3(results: pathlib.Path) -> str:
  """Returns the report that the table3 job writes, without measurement."""
  with (
      tempfile.TemporaryDirectory() as folder,
      contextlib.redirect_stdout(io.StringIO()),
  ):
    paper.table3(
        folder,
        lambda output_dir: records.read(results / 'walltime_bulletins.jsonl'),
        [str(results / 'walltime_multi30k.jsonl')],
    )
    return (pathlib.Path(folder) / 'table3.md').read_text()
