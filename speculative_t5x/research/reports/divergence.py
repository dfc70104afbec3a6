# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of the compare job: where runs first differ, and how closely."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from rich import console as console_lib

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import console

# Settings of both runs, and those that may differ.
_SHARED = (
    'temperature', 'topk', 'topp', 'minp', 'typicalp', 'seed', 'num_decodes',
)  # fmt: skip
_OWN = (
    'job', 'task', 'split', 'gamma', 'batch_size', 'mesh', 'device', 'created',
    'package_version', 'commit',
)  # fmt: skip


MISMATCH = 'mismatch'


def describe(
    example_id: int, decode: int, difference: near_ties.Difference
) -> dict[str, Any]:
  """Return an output that differs as an object of `divergence.jsonl`."""
  keys = 'position', 'decision', 'tokens', 'logits', 'margin', 'tolerance'
  return {
      'example_id': example_id,
      'decode': decode,
      **{key: getattr(difference, key) for key in keys},
      'verdict': 'near_tie' if difference.is_near_tie else MISMATCH,
  }


def compared(
    records: Sequence[run_record.RunRecord],
    ways: Sequence[str],
    num_rows: int,
    differences: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
  """Return a line of `divergence.jsonl`; see `docs/run_record.md`.

  The ways are 'baseline' or 'speculative'. For the differences see `describe`.
  """
  first, second = map(dataclasses.asdict, records)
  num_bad = sum(each['verdict'] == MISMATCH for each in differences)
  return {
      **{key: first[key] for key in _SHARED},
      'target': first['target']['name'],
      'first': {'way': ways[0], **{key: first[key] for key in _OWN}},
      'second': {'way': ways[1], **{key: second[key] for key in _OWN}},
      'rows': num_rows,
      'identical': num_rows - len(differences),
      'near_tie': len(differences) - num_bad,
      'mismatch': num_bad,
      'differences': differences,
  }


def render(lines: Sequence[Mapping[str, Any]]) -> console_lib.Group:
  """Return a table of the rows that differ, and the counts; see `compared`."""
  rows = [_row(line, row) for line in lines for row in line['differences']]
  table = [console.table(rows), ''] if rows else []
  return console_lib.Group(*table, *map(_summary, lines))


def _row(line: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str]:
  """Return the cells of an output that differs, by column."""
  pairs = row['logits'] or ((None, None), (None, None))
  logits = [' / '.join(cells.number(x, 6) for x in pair) for pair in pairs]
  small = lambda x: cells.MISSING if x is None else f'{x:.1e}'
  return {
      'temperature': f'{line["temperature"]:g}',
      'runs': _ways(line),
      'example': str(row['example_id']),
      'decode': str(row['decode']),
      'position': str(row['position']),
      'decision': row['decision'] or 'not repeated',
      'tokens': ' / '.join(map(str, row['tokens'])),
      'logits, first run': logits[0],
      'logits, second run': logits[1],
      'margin': small(row['margin']),
      'tolerance': small(row['tolerance']),
      'verdict': row['verdict'].replace('_', ' '),
  }


def _ways(line: Mapping[str, Any]) -> str:
  ways = [line[run]['way'] for run in ('first', 'second')]
  return ' / '.join(dict.fromkeys(ways))


def _summary(line: Mapping[str, Any]) -> str:
  return (
      f'temperature {line["temperature"]:g}, {_ways(line)}:'
      f' {line["identical"]} of {line["rows"]} outputs are identical,'
      f' {line["near_tie"]} near ties, {line["mismatch"]} mismatches'
  )
