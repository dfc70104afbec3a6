# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper job: each table and figure of the paper, by a command.

A function each, named as its gin file in `configs/paper`. What is measured goes
to a folder of its own under the output folder, where an interrupted run goes
on; figures lay over their curves what they find there.
"""

from collections.abc import Callable, Mapping, Sequence
import json
import os
from typing import Any

from etils import epath
from matplotlib import figure as figure_lib

from speculative_t5x.decoder import text_decoder
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import table_source
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import figure_style
from speculative_t5x.research import run_record
from speculative_t5x.research.paper import decoded_sentence
from speculative_t5x.research.paper import figures
from speculative_t5x.research.paper import loop_trace
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import measured_loops
from speculative_t5x.research.paper import points as points_lib
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import runs
from speculative_t5x.research.reports import token_trace
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.speculation import sampling as sampling_lib

_ALL = _SIMULATED, _MEASURED = 'simulated', 'measured'  # folders of records
_TABLE, _OF_TABLE = 'token_counts', 'measured_ngrams'  # folders of Table 3
_NGRAM_GAMMA = 3  # of the paper's example for bigrams, Section 3.6

Path = str | os.PathLike[str]
RowName = tuple[str, str, float]  # task, draft and temperature, as published


def table1(output_dir: Path) -> None:
  """Operations and speed for given alphas and gammas, computed."""
  _write(output_dir, 'table1.md', markdown_tables.table_1())


def table2(
    output_dir: Path,
    target_size: str | None,
    shapes: simulated_walltimes.Shapes,
    measured: Mapping[RowName, Path] | None = None,
) -> None:
  """Speedups of T5 1.1 beside Table 2's; see `table4` for the arguments."""
  _write_speeds('table2.md', output_dir, target_size, shapes, measured)


def table4(
    output_dir: Path,
    target_size: str | None,
    shapes: simulated_walltimes.Shapes,
    measured: Mapping[RowName, Path] | None = None,
) -> None:
  """Writes predicted and measured speedups beside Table 4's, of the same runs.

  Args:
    output_dir: Folder for the table and the records.
    target_size: Size of T5 1.1, in the place of XXL; None for the largest that
      fits the memory.
    shapes: What is decoded where acceptance is simulated.
    measured: Results of the walltime job for rows whose pair is at hand, by
      task ('EnDe' or 'CNNDM'), draft and temperature. All others are
      simulated at the paper's alpha.
  """
  _write_speeds('table4.md', output_dir, target_size, shapes, measured)


def _write_speeds(name, output_dir, target_size, shapes, measured) -> None:
  """Writes a table of speeds; see `table4`."""
  found = {
      published.row(*key): _find_record(path, published.row(*key))
      for key, path in (measured or {}).items()
  }
  # Each other row is measured with its sizes at the paper's alpha.
  rows = [row for row in published.TABLES_2_AND_4 if row not in found]
  if rows:
    pairings = [
        simulated_walltimes.Pairing(
            row.draft, row.alpha, row.gamma, float(row.temperature)
        )
        for row in rows
    ]
    path = epath.Path(output_dir) / _SIMULATED
    with folder_lock.hold(path):
      records, folder = simulated_walltimes.measure_pairings(
          target_size,
          pairings,
          shapes,
          lambda: output_folder.OutputFolder(path, 'walltime'),
      )
      folder.finish()
    found |= zip(rows, records, strict=True)
  pairing = [(row, found[row]) for row in published.TABLES_2_AND_4]
  _write(output_dir, name, markdown_tables.tables_2_and_4(pairing))


def _find_record(path: Path, row: published.Row) -> run_record.RunRecord:
  """Returns the record of a row's temperature, gamma and batch size."""
  wanted = row.temperature, row.gamma, published.BATCH_SIZE
  found = [
      x
      for x in runs.read(path)
      if (x.temperature, x.gamma, x.batch_size) == wanted
  ]
  if len(found) != 1:
    raise ValueError(
        f'{path} must have one record of temperature {row.temperature:g}, gamma'
        f' {row.gamma} and batch size {published.BATCH_SIZE}, which the row'
        f' {row.task}, {row.draft} needs, and has {len(found)}. Run the'
        ' walltime job with them, each draft to a folder of its own.'
    )
  return found[0]


def table3(
    output_dir: Path,
    measure: Callable[..., Sequence[run_record.RunRecord]],
    records: Path | Sequence[Path] = (),
    count: Callable[..., object] | None = None,
) -> None:
  """Writes alpha of every available drafter, then the paper's values.

  Args:
    output_dir: Folder for the table and the records.
    measure: Runs a walltime job; takes `output_dir`, `drafters` and `gamma`.
    records: Results of further walltime jobs.
    count: Runs a make-table job; takes `output_dir`. Unigrams and bigrams of
      its counts are measured too. None for neither.
  """
  # Before anything is measured.
  added = [x for path in _paths(records) for x in runs.read(path)]
  folder = epath.Path(output_dir)
  found = list(measure(output_dir=str(folder / _MEASURED)))
  if count is not None:
    counts = folder / _TABLE
    if not (counts / token_counts.FILE_NAME).exists():
      count(output_dir=str(counts))
    found += measure(
        output_dir=str(folder / _OF_TABLE),
        drafters=[
            table_source.FromFile(str(counts), order) for order in (1, 2)
        ],
        gamma=_NGRAM_GAMMA,
    )
  _write(output_dir, 'table3.md', markdown_tables.table_3([*found, *added]))


def figure1(
    output_dir: Path,
    decoder: text_decoder.TextDecoder,
    text: str,
    sampling: sampling_lib.Sampling = sampling_lib.GREEDY,
) -> None:
  """Draws the decoding of a sentence as a page, a picture and terminal text.

  Args:
    output_dir: Gets figure1.html, .pdf and .png; the terminal gets the rest.
    decoder: Decodes the sentence.
    text: Input of the decoding.
    sampling: Sampling of target and drafter; the default is argmax.
  """
  shown = token_trace.trace(decoder, text, sampling=sampling)
  console.show(shown)
  page = decoded_sentence.page(shown)
  _write(output_dir, 'figure1.html', page, is_shown=False)
  text = console.to_text(shown)
  _save(output_dir, 'figure1', decoded_sentence.draw(shown), [text])


def figure2(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Draws tokens per target call over alpha; see `figure4`."""
  _save_points('figure2', figures.figure_2, output_dir, records)


def figure3(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Draws the best gamma over alpha; see `figure4`."""
  _save_points('figure3', figures.figure_3, output_dir, records, (_MEASURED,))


def figure4(output_dir: Path, records: Path | Sequence[Path] = ()) -> None:
  """Draws speed and operations over alpha.

  Args:
    output_dir: Gets the figure; what the tables measured there is laid over it.
    records: Results of further walltime or simulate jobs.
  Raises:
    ValueError: for results without a record to be laid over it.
  """
  _save_points('figure4', figures.figure_4, output_dir, records)


def figure5(
    output_dir: Path,
    decoder: text_decoder.TextDecoder,
    text: str,
    gammas: Sequence[int],
    rounds: int = measured_loops.ROUNDS,
) -> None:
  """Draws a trace of both loops from the times of their parts.

  Args:
    output_dir: Gets figure5.pdf, .png, and .json for a trace viewer.
    decoder: Its loops are traced.
    text: Input of the decoding, at temperature 0.
    gammas: Draft tokens per block; each gets a row below plain decoding.
    rounds: How often loops and parts are timed.
  """
  rows = measured_loops.measure(decoder, text, gammas, rounds=rounds)
  events = loop_trace.to_trace_events(rows)
  trace = json.dumps(events, allow_nan=False)
  _write(output_dir, 'figure5.json', trace, is_shown=False)
  _save(output_dir, 'figure5', loop_trace.draw(rows), [events])


def _save_points(name, draw, output_dir, records, folders=_ALL) -> None:
  """Draws a figure over the records of the output folder and of given files."""
  measured = [epath.Path(output_dir) / f / 'results.jsonl' for f in folders]
  found = [x for path in measured if path.exists() for x in runs.read(path)]
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
  """Returns the paths of one file or of several."""
  if isinstance(records, str) or not isinstance(records, Sequence):
    return [records]
  return records


def _write(
    output_dir: Path, name: str, text: str, *, is_shown: bool = True
) -> None:
  lines = [text.rstrip('\n')]
  path = whole_files.write(epath.Path(output_dir), name, lines)
  if is_shown:
    print(text)
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
        epath.Path(output_dir), f'{name}.{kind}', [picture]
    )
    print(f'Written: {path}')
