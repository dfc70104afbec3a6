# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Renders the reports and pictures in `results` from the records beside them.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import json
import pathlib
from typing import Any

from matplotlib import figure as figure_lib
from PIL import Image

from scripts.pages import records
from scripts.pages import step_figure
from scripts.pages import throughput
from speculative_t5x.research import figure_style
from speculative_t5x.research import run_record
from speculative_t5x.research import speedup_figure
from speculative_t5x.research.ahead_of_time import preflight_report
from speculative_t5x.research.paper import figures
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import measured_pairs
from speculative_t5x.research.paper import points
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import runs as runs_lib
from speculative_t5x.research.reports import walltime_summary

# Of pairs with weights, and of sizes with simulated acceptance.
MEASURED = (
    'walltime_bulletins.jsonl', 'walltime_multi30k.jsonl',
    'multi30k/walltime.jsonl',
)  # fmt: skip
_SIMULATED = 'paper/table2.jsonl', 'simulate_xl.jsonl'
_THROUGHPUT = records.RESULTS / 'throughput.ndjson'
# Of these only alpha is shown.
_NGRAMS = ('paper/ngrams.jsonl',)


@dataclasses.dataclass(frozen=True)
class Picture:
  """A PNG file and what it shows.

  Attributes:
    path: Its path.
    records: What it is made from.
    render: Returns its bytes.
  """

  path: pathlib.Path
  records: Sequence[Any]
  render: Callable[[], bytes]

  def is_current(self) -> bool:
    """Return whether the file has the digest of its records."""
    return self.path.exists() and is_made_from(self.path, self.records)


def is_made_from(path: pathlib.Path, found: Sequence[Any]) -> bool:
  """Return whether a PNG file has the digest of records."""
  with Image.open(path) as image:
    return image.info.get('Description') == markdown.digest_note(found)


def render() -> Iterator[tuple[pathlib.Path, str]]:
  """Yield the path and the rendered text of each report."""
  yield from ((path, f'{page}\n') for path, page in _reports())
  yield step_figure.PATH, step_figure.draw()


def _reports() -> Iterator[tuple[pathlib.Path, markdown.Page]]:
  """Yield the path and the page of each report."""
  results = records.RESULTS
  for pattern in 'walltime*.jsonl', 'simulate*.jsonl':
    for path in sorted(results.rglob(pattern)):
      page = walltime_summary.render(runs_lib.read(path))
      yield path.with_suffix('.md'), page
  for path in sorted(results.glob('*preflight/*/*preflight.json')):
    page = preflight_report.render(json.loads(path.read_text()))
    yield path.with_suffix('.md'), page
  for folder in 'methods', 'coupled':
    page = methods_table.render(_tasks(folder))
    yield results / f'{folder}/{folder}.md', page
  simulated = records.runs('paper/table2.jsonl')
  pairs = measured_pairs.find(results / 'paper')
  known = {record.task for pair in pairs for record in pair.records}
  others = records.runs(*MEASURED, *_NGRAMS)
  others = [record for record in others if record.task not in known]
  for number, table in (
      (1, markdown_tables.table_1()),
      (2, markdown_tables.tables_2_and_4(simulated, pairs)),
      (3, markdown_tables.table_3(others, pairs)),
      (5, markdown_tables.table_5(pairs)),
  ):
    yield results / f'paper/table{number}.md', table
  rates = throughput.read(_THROUGHPUT)
  yield _THROUGHPUT.with_suffix('.md'), throughput.render(rates)


def _tasks(folder: str) -> dict[str, list[run_record.RunRecord]]:
  """Return the records of each task of a methods job."""
  return {
      path.stem: records.runs(f'{folder}/{path.name}')
      for path in sorted(records.RESULTS.glob(f'{folder}/*.jsonl'))
  }


def pictures() -> Iterator[Picture]:
  """Yield the pictures that are drawn from records alone."""
  results = records.RESULTS
  measured = records.runs(*MEASURED)
  simulated = records.runs(*_SIMULATED)
  for name, draw, found in (
      ('figure2', figures.figure_2, measured + simulated),
      ('figure3', figures.figure_3, measured),
      ('figure4', figures.figure_4, measured + simulated),
  ):
    path = results / f'paper/{name}.png'
    yield Picture(path, found, functools.partial(_draw, draw, found))
  tasks = _tasks('methods')
  runs = [record for each in tasks.values() for record in each]

  def draw_methods() -> bytes:
    return figure_style.render(speedup_figure.draw(tasks), records=runs)

  yield Picture(results / 'methods/methods.png', runs, draw_methods)
  rates = throughput.read(_THROUGHPUT)

  def draw_rates() -> bytes:
    return figure_style.render(throughput.draw(rates), records=rates)

  yield Picture(_THROUGHPUT.with_suffix('.png'), rates, draw_rates)


def _draw(
    draw: Callable[[Sequence[points.Point]], figure_lib.Figure],
    found: Sequence[run_record.RunRecord],
) -> bytes:
  return figure_style.render(draw(points.from_records(found)), records=found)
