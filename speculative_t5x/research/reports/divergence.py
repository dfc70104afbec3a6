# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of the compare job: where two runs part, and how closely."""

from collections.abc import Sequence
import dataclasses
from typing import Any

from rich import console as console_lib

from speculative_t5x.loading.files import json_lines
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import console

_HEADER = (
    'temperature', 'runs', 'example', 'decode', 'position', 'decision',
    'tokens', 'logits, first run', 'logits, second run', 'margin', 'tolerance',
    'verdict',
)  # fmt: skip
# Settings of both runs, and those that may differ.
_SHARED = (
    'temperature', 'topk', 'topp', 'minp', 'typicalp', 'seed', 'num_decodes',
)  # fmt: skip
_OWN = (
    'job', 'task', 'split', 'gamma', 'batch_size', 'mesh', 'device', 'created',
    'package_version', 'commit',
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
  """An output that differs between two runs.

  Attributes:
    example_id: of the example.
    decode: number of the decode, from 0 on.
    difference: where they part.
  """

  example_id: int
  decode: int
  difference: near_ties.Difference

  @property
  def verdict(self) -> str:
    return 'near_tie' if self.difference.is_near_tie else 'mismatch'


@dataclasses.dataclass(frozen=True)
class Compared:
  """Two runs of the same rows.

  Attributes:
    records: of both.
    ways: 'baseline' or 'speculative', of both.
    num_rows: outputs of each run.
    rows: those that differ.
  """

  records: tuple[run_record.RunRecord, run_record.RunRecord]
  ways: tuple[str, str]
  num_rows: int
  rows: tuple[Row, ...]

  @property
  def mismatches(self) -> tuple[Row, ...]:
    return tuple(row for row in self.rows if row.verdict == 'mismatch')

  @property
  def counts(self) -> run_record.Greedy:
    """The rows by verdict."""
    num_bad = len(self.mismatches)
    return run_record.Greedy(
        self.num_rows - len(self.rows), len(self.rows) - num_bad, num_bad
    )


def to_json(compared: Compared) -> str:
  """Returns a line of `divergence.jsonl`; see `docs/run_record.md`.

  Raises:
    ValueError: for a number that is not finite.
  """
  first, second = map(dataclasses.asdict, compared.records)
  line = {
      **{key: first[key] for key in _SHARED},
      'target': first['target']['name'],
      **{
          name: {'way': way, **{key: record[key] for key in _OWN}}
          for name, way, record in zip(
              ('first', 'second'), compared.ways, (first, second), strict=True
          )
      },
      'rows': compared.num_rows,
      **dataclasses.asdict(compared.counts),
      'differences': [_as_json(row) for row in compared.rows],
  }
  return json_lines.dumps(line)


def _as_json(row: Row) -> dict[str, Any]:
  found = row.difference
  return {
      'example_id': row.example_id,
      'decode': row.decode,
      'position': found.position,
      'decision': found.decision,
      'tokens': found.tokens,
      'logits': found.logits,
      'margin': found.margin,
      'tolerance': found.tolerance,
      'verdict': row.verdict,
  }


def render(compared: Sequence[Compared]) -> console_lib.Group:
  """Returns a table of the rows that differ, and the counts.

  Args:
    compared: at least one.
  """
  rows = [_cells(each, row) for each in compared for row in each.rows]
  table = [console.table(_HEADER, rows), ''] if rows else []
  return console_lib.Group(*table, *map(_summary, compared))


def _cells(compared: Compared, row: Row) -> tuple[str, ...]:
  found = row.difference
  logits = found.logits or ((None, None), (None, None))
  return (
      f'{compared.records[0].temperature:g}',
      _ways(compared),
      str(row.example_id),
      str(row.decode),
      str(found.position),
      found.decision or 'not repeated',
      _both(map(str, found.tokens)),
      *(_both(cells.number(x, 6) for x in pair) for pair in logits),
      _small(found.margin),
      _small(found.tolerance),
      row.verdict.replace('_', ' '),
  )


def _both(texts) -> str:
  return ' / '.join(texts)


def _small(value: float | None) -> str:
  return cells.MISSING if value is None else f'{value:.1e}'


def _ways(compared: Compared) -> str:
  return _both(dict.fromkeys(compared.ways))


def _summary(compared: Compared) -> str:
  counts = compared.counts
  return (
      f'temperature {compared.records[0].temperature:g}, {_ways(compared)}:'
      f' {counts.identical} of {compared.num_rows} outputs are identical,'
      f' {counts.near_tie} near ties, {counts.mismatch} mismatches'
  )
