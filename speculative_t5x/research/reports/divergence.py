# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of the compare job: where runs first differ, and how closely."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import near_ties

# Settings of both runs, and those that may differ.
_SHARED = (
    'temperature', 'topk', 'topp', 'minp', 'typicalp', 'seed', 'num_decodes',
)  # fmt: skip
_OWN = (
    'job', 'task', 'split', 'gamma', 'batch_size', 'mesh', 'device', 'created',
    'package_version', 'commit',
)  # fmt: skip

MISMATCH = 'mismatch'
_VERDICTS = 'near_tie', MISMATCH, 'unexplained'


def describe(
    example_id: int, decode: int, difference: near_ties.Difference | None
) -> dict[str, Any]:
  """Return an output that differs as an object of `divergence.jsonl`.

  The difference is None if it is not explained.
  """
  keys = 'position', 'decision', 'tokens', 'logits', 'margin', 'tolerance'
  verdict = 'unexplained'
  if difference is not None:
    verdict = 'near_tie' if difference.is_near_tie else MISMATCH
  return {
      'example_id': example_id,
      'decode': decode,
      **{key: getattr(difference, key, None) for key in keys},
      'verdict': verdict,
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
  verdicts = collections.Counter(each['verdict'] for each in differences)
  return {
      **{key: first[key] for key in _SHARED},
      'target': first['target']['name'],
      'first': {'way': ways[0], **{key: first[key] for key in _OWN}},
      'second': {'way': ways[1], **{key: second[key] for key in _OWN}},
      'rows': num_rows,
      'identical': num_rows - len(differences),
      **{name: verdicts[name] for name in _VERDICTS},
      'differences': differences,
  }


def render(lines: Sequence[Mapping[str, Any]]) -> str:
  """Return the counts of each comparison, a line each; see `compared`."""
  return '\n'.join(map(_summary, lines))


def _summary(line: Mapping[str, Any]) -> str:
  unexplained = line.get('unexplained')  # older versions explained all
  note = f', {unexplained} that differ and are not explained'
  ways = dict.fromkeys(line[run]['way'] for run in ('first', 'second'))
  return (
      f'temperature {line["temperature"]:g}, {" / ".join(ways)}:'
      f' {line["identical"]} of {line["rows"]} outputs are identical,'
      f' {line["near_tie"]} near ties, {line["mismatch"]} mismatches'
      f'{note if unexplained else ""}'
  )
