# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of the methods job holds the numbers of its records."""

import dataclasses

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import methods_table
from tests.research.paper import records


def _record(speedup, **values):
  """A record of some speedup; kind and name are those of its drafter."""
  kind, name = values.pop('kind', 'model'), values.pop('name', 'a/1')
  rule = values.pop('rule', 'tokenwise')
  return dataclasses.replace(
      records.measured(temperature=values.pop('temperature', 1.0)),
      drafter=descriptions.DrafterDescription(kind=kind, name=name),
      verification=run_record.Verification(rule),
      speedup=speedup,
      speedup_ci95=(speedup - 0.1, speedup + 0.1),
      **{'lossless': True, 'gamma_policy': 'fixed', **values},
  )


def _rows(**tasks):
  """Returns the header and the rows of the only table."""
  (table,) = methods_table.tables(tasks).values()
  return records.cells(table)


def test_rows_and_cells():
  header, rows = _rows(
      translation=[
          _record(1.5, tokens_per_target_call=3.456),
          _record(1.6, rule='block'),
          _record(1.8, rule='lenience(lenience=0.5)', lossless=False),
          _record(1.2, kind='lookup', name='lookup'),
      ],
      summaries=[
          _record(1.1, name='b/2', tokens_per_target_call=2.0),
          _record(1.4, kind='lookup', name='lookup'),
      ],
  )
  assert header == [
      'drafter', 'rule', 'policy', 'gamma',
      'translation: speedup', 'translation: tokens/call',
      'summaries: speedup', 'summaries: tokens/call',
  ]  # fmt: skip
  lossy = 'lenience(lenience=0.5), not lossless'
  assert rows == [
      ['model', 'tokenwise', 'fixed', '7', '1.50 [1.40, 1.60]', '3.46',
       '1.10 [1.00, 1.20]', '2.00'],
      ['model', 'block', 'fixed', '7', '**1.60 [1.50, 1.70]**', '2.50',
       '-', '-'],
      ['model', lossy, 'fixed', '7', '1.80 [1.70, 1.90]', '2.50', '-', '-'],
      ['lookup', 'tokenwise', 'fixed', '7', '1.20 [1.10, 1.30]', '2.50',
       '**1.40 [1.30, 1.50]**', '2.50'],
  ]  # fmt: skip


def test_a_table_per_temperature_and_batch_size():
  tables = methods_table.tables(
      {'one': [_record(1.2), _record(1.3, temperature=0.0),
               _record(1.4, temperature=0.0, batch_size=4)]}
  )  # fmt: skip
  assert {key: records.cells(x)[1][0][4] for key, x in tables.items()} == {
      (0.0, 1): '**1.30 [1.20, 1.40]**',
      (0.0, 4): '**1.40 [1.30, 1.50]**',
      (1.0, 1): '**1.20 [1.10, 1.30]**',
  }


def test_measured_numbers_of_tasks_share_a_row():
  _, rows = _rows(
      a=[_record(1.2, gamma_policy='expected_speed(0.1, 1.5)')],
      b=[_record(1.3, gamma_policy='expected_speed(0.2, 1.1)', name='b/2')],
  )
  assert [(row[0], row[2]) for row in rows] == [('model', 'expected_speed')]


def test_several_of_a_kind_have_their_names():
  _, rows = _rows(
      a=[
          _record(1.2),
          _record(1.3, name='b/2', gamma_policy='schedule(1, 2)'),
          _record(1.4, gamma_policy='schedule(5)'),
      ]
  )
  assert [(row[0], row[2]) for row in rows] == [
      ('a/1', 'fixed'), ('b/2', 'schedule(1, 2)'), ('a/1', 'schedule(5)')
  ]  # fmt: skip
