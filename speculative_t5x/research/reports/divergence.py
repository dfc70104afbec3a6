# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of the compare job: where runs first differ, and how closely."""

from collections.abc import Iterable, Mapping, Sequence
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
class Compared:
  """Two runs of the same rows.

  Attributes:
    records: records of both.
    ways: 'baseline' or 'speculative', of both.
    num_rows: outputs of each run.
    rows: the outputs that differ, see `describe`.
  """

  records: tuple[run_record.RunRecord, run_record.RunRecord]
  ways: tuple[str, str]
  num_rows: int
  rows: Sequence[Mapping[str, Any]]

  @property
  def mismatches(self) -> list[Mapping[str, Any]]:
    return [row for row in self.rows if row['verdict'] == 'mismatch']

  @property
  def counts(self) -> run_record.Greedy:
    """The rows by verdict."""
    num_bad = len(self.mismatches)
    return run_record.Greedy(
        self.num_rows - len(self.rows), len(self.rows) - num_bad, num_bad
    )


def describe(
    example_id: int, decode: int, difference: near_ties.Difference
) -> dict[str, Any]:
  """Returns an output that differs as an object of `divergence.jsonl`.

  Args:
    example_id: id of the example.
    decode: number of the decode, from 0 on.
    difference: where the runs first differ.
  """
  keys = 'position', 'decision', 'tokens', 'logits', 'margin', 'tolerance'
  return {
      'example_id': example_id,
      'decode': decode,
      **{key: getattr(difference, key) for key in keys},
      'verdict': 'near_tie' if difference.is_near_tie else 'mismatch',
  }


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
      'differences': compared.rows,
  }
  return json_lines.dumps(line)


def render(compared: Sequence[Compared]) -> console_lib.Group:
  """Returns a table of the rows that differ, and the counts.

  Args:
    compared: at least one comparison.
  """
  rows = [
      dict(zip(_HEADER, _cells(each, row), strict=True))
      for each in compared
      for row in each.rows
  ]
  table = [console.table(rows), ''] if rows else []
  return console_lib.Group(*table, *map(_summary, compared))


def _cells(compared: Compared, row: Mapping[str, Any]) -> tuple[str, ...]:
  logits = row['logits'] or ((None, None), (None, None))
  small = [row['margin'], row['tolerance']]
  return (
      f'{compared.records[0].temperature:g}',
      _both(dict.fromkeys(compared.ways)),
      str(row['example_id']),
      str(row['decode']),
      str(row['position']),
      row['decision'] or 'not repeated',
      _both(map(str, row['tokens'])),
      *(_both(cells.number(x, 6) for x in pair) for pair in logits),
      *(cells.MISSING if x is None else f'{x:.1e}' for x in small),
      row['verdict'].replace('_', ' '),
  )


def _both(texts: Iterable[str]) -> str:
  return ' / '.join(texts)


def _summary(compared: Compared) -> str:
  counts = compared.counts
  return (
      f'temperature {compared.records[0].temperature:g},'
      f' {_both(dict.fromkeys(compared.ways))}: {counts.identical} of'
      f' {compared.num_rows} outputs are identical, {counts.near_tie} near'
      f' ties, {counts.mismatch} mismatches'
  )
