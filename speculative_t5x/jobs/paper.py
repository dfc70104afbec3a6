# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper job: each table and figure of the paper, by a command.

A function each, named as its gin file in `configs/paper`. They show what
`task_pairs` measured of pairs with checkpoints; what is simulated goes to a
folder of its own under the output folder, where an interrupted run goes on.
"""

from collections.abc import Sequence
import json
import os
from typing import Any

from matplotlib import figure as figure_lib

from speculative_t5x.decoder import text_decoder
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import figure_style
from speculative_t5x.research import run_record
from speculative_t5x.research.paper import figures
from speculative_t5x.research.paper import loop_trace
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import measured_pairs
from speculative_t5x.research.paper import points as points_lib
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import runs
from speculative_t5x.research.reports import token_trace
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.speculation import sampling as sampling_lib

_SIMULATED = 'simulated'  # folder of records

Path = str | os.PathLike[str]


def table1(output_dir: Path) -> None:
  """Operations and speed for given alphas and gammas, computed."""
  _write(output_dir, 'table1.md', markdown_tables.table_1())


def table2(
    output_dir: Path,
    target_size: str,
    shapes: simulated_walltimes.Shapes | None,
) -> None:
  """Write predicted and measured speedups beside those of Tables 2 and 4.

  Args:
    output_dir: Folder for the table and the records. The paper's rows that
      `task_pairs` did not measure there are simulated at the paper's alpha.
    target_size: Size of T5 1.1, in the place of XXL.
    shapes: What is decoded where acceptance is simulated; None to simulate no
      row.
  """
  found = _speeds(output_dir, target_size, shapes)
  _write(output_dir, 'table2.md', markdown_tables.tables_2_and_4(*found))


def _speeds(
    output_dir: Path,
    target_size: str,
    shapes: simulated_walltimes.Shapes | None,
) -> tuple[Sequence[run_record.RunRecord], markdown_tables.Pairs]:
  """Return what is simulated for the paper's rows, and what was measured."""
  measured = measured_pairs.find(output_dir)
  known = {
      (pair.task, pair.draft, record.temperature)
      for pair in measured
      for record in pair.records
      if record.speedup is not None
  }
  pairings = [
      simulated_walltimes.Pairing(
          row.draft, row.alpha, row.gamma, float(row.temperature)
      )
      for row in published.TABLES_2_AND_4
      if (row.task, row.draft, row.temperature) not in known
  ]
  if not pairings or shapes is None:
    return [], measured
  path = user_paths.expand(output_dir) / _SIMULATED
  with folder_lock.hold(path):
    records, folder = simulated_walltimes.measure_pairings(
        target_size,
        pairings,
        shapes,
        lambda: output_folder.OutputFolder(path, 'walltime'),
    )
    folder.finish()
  return records, measured


def table3(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Write alpha of every pair, beside the paper's, and Appendix A.2.

  The records are results of walltime jobs beside what `task_pairs` measured.
  """
  added = [x for path in _paths(records) for x in runs.read(path)]
  page = markdown_tables.table_3(added, measured_pairs.find(output_dir))
  _write(output_dir, 'table3.md', page)


def table5(output_dir: Path) -> None:
  """Write alpha under lenience of every pair, beside Table 5's."""
  page = markdown_tables.table_5(measured_pairs.find(output_dir))
  _write(output_dir, 'table5.md', page)


def figure1(
    output_dir: Path,
    decoder: text_decoder.TextDecoder,
    text: str,
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
) -> None:
  """Draw the decoding of a sentence, as figure1.svg and on the terminal."""
  shown = token_trace.trace(decoder, text, sampling=sampling)
  console.show(shown)
  _write(output_dir, 'figure1.svg', console.to_svg(shown), is_shown=False)


def figure2(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Draw tokens per target call over alpha; see `figure4`."""
  _save_points('figure2', figures.figure_2, output_dir, records)


def figure3(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Draw the best gamma over alpha; see `figure4`."""
  _save_points(
      'figure3', figures.figure_3, output_dir, records, has_simulated=False
  )


def figure4(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Draw speed and operations over alpha.

  What the tables measured in the output folder, and results of further walltime
  or simulate jobs, are laid over it.
  """
  _save_points('figure4', figures.figure_4, output_dir, records)


def figure5(
    output_dir: Path,
    decoder: text_decoder.TextDecoder,
    text: str,
    gammas: Sequence[int],
    rounds: int = loop_trace.ROUNDS,
) -> None:
  """Draw a trace of both loops from the times of their parts.

  The output folder gets figure5.pdf, .png, and .json with the times. Each gamma
  gets a row below plain decoding of the text, at temperature 0.
  """
  rows = loop_trace.measure(decoder, text, gammas, rounds=rounds)
  times = {row.label: row.spans for row in rows}
  text = json.dumps(times, allow_nan=False)
  _write(output_dir, 'figure5.json', text, is_shown=False)
  setting = walltime_summary.setting(decoder.tokens, 'temperature 0')
  _save(output_dir, 'figure5', loop_trace.draw(rows, setting), [times])


def _save_points(
    name, draw, output_dir, records, *, has_simulated=True
) -> None:
  """Draw a figure over the records of the output folder and of given files."""
  found = [x for pair in measured_pairs.find(output_dir) for x in pair.records]
  simulated = user_paths.expand(output_dir) / _SIMULATED / 'results.jsonl'
  if has_simulated and simulated.exists():
    found += runs.read(simulated)
  for path in _paths(records):
    added = runs.read(path)
    if not points_lib.from_records(added):
      raise ValueError(
          f'{path} holds no record with alpha, c and a speedup. Pass the'
          ' results.jsonl of a walltime or simulate job.'
      )
    found += added
  _save(output_dir, name, draw(points_lib.from_records(found)), found)


def _paths(records: Path | Sequence[Path]) -> Sequence[Path]:
  if isinstance(records, str) or not isinstance(records, Sequence):
    return [records]
  return records


def _write(
    output_dir: Path,
    name: str,
    report: str | markdown.Page,
    *,
    is_shown: bool = True,
) -> None:
  lines = [str(report).rstrip('\n')]
  path = whole_files.write(user_paths.expand(output_dir), name, lines)
  if is_shown:
    console.show(report)
  print(f'Written: {path}')


def _save(
    output_dir: Path,
    name: str,
    figure: figure_lib.Figure,
    records: Sequence[Any],
) -> None:
  for kind in ('pdf', 'png'):
    picture = figure_style.render(figure, kind, records=records)
    path = whole_files.write_bytes(
        user_paths.expand(output_dir), f'{name}.{kind}', [picture]
    )
    print(f'Written: {path}')
