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


def _tables(page):
  """Returns the tables of a page by their titles, as lists of rows of cells."""
  parts = page.split('\n\n')
  return {
      title.removeprefix('## '): [
          [cell.strip() for cell in line.strip('| ').split(' | ')]
          for line in table.splitlines()
      ]
      for title, table in zip(parts, parts[1:], strict=False)
      if title.startswith('## ')
  }


class TestRender:

  def test_rows_and_cells(self):
    page = methods_table.render(
        {
            'translation': [
                _record(1.5, tokens_per_target_call=3.456),
                _record(1.6, rule='block'),
                _record(1.8, rule='lenience(lenience=0.5)', lossless=False),
                _record(1.2, kind='lookup', name='lookup'),
            ],
            'summaries': [
                _record(1.1, name='b/2', tokens_per_target_call=2.0),
                _record(1.4, kind='lookup', name='lookup'),
            ],
        }
    )
    ((title, (header, _, *rows)),) = _tables(page).items()
    assert title == 'Temperature 1, batch 1'
    assert header == [
        'drafter', 'rule', 'policy', 'gamma',
        'translation: speedup', 'translation: tokens/call',
        'summaries: speedup', 'summaries: tokens/call',
    ]  # fmt: skip
    missing = ['-', '-']
    lossy = 'lenience(lenience=0.5), not lossless'
    assert rows == [
        ['model', 'tokenwise', 'fixed', '7', '1.50 [1.40, 1.60]', '3.46',
         '1.10 [1.00, 1.20]', '2.00'],
        ['model', 'block', 'fixed', '7', '**1.60 [1.50, 1.70]**', '2.50',
         *missing],
        ['model', lossy, 'fixed', '7', '1.80 [1.70, 1.90]', '2.50', *missing],
        ['lookup', 'tokenwise', 'fixed', '7', '1.20 [1.10, 1.30]', '2.50',
         '**1.40 [1.30, 1.50]**', '2.50'],
    ]  # fmt: skip

  def test_a_table_per_temperature_and_batch_size(self):
    page = methods_table.render(
        {'one': [_record(1.2), _record(1.3, temperature=0.0),
                 _record(1.4, temperature=0.0, batch_size=4)]}
    )  # fmt: skip
    tables = _tables(page)
    assert [*tables] == [
        'Temperature 0, batch 1', 'Temperature 0, batch 4',
        'Temperature 1, batch 1',
    ]  # fmt: skip
    shown = [rows[2][4] for rows in tables.values()]
    assert shown == [
        '**1.30 [1.20, 1.40]**', '**1.40 [1.30, 1.50]**',
        '**1.20 [1.10, 1.30]**',
    ]  # fmt: skip


class TestNames:

  def _named(self, *each):
    """Returns drafters and policies of the rows."""
    tables = _tables(methods_table.render(dict(zip('ab', each, strict=False))))
    ((_, _, *rows),) = tables.values()
    return [(row[0], row[2]) for row in rows]

  def test_measured_numbers_of_tasks_share_a_row(self):
    assert self._named(
        [_record(1.2, gamma_policy='expected_speed(0.1, 1.5)')],
        [_record(1.3, gamma_policy='expected_speed(0.2, 1.1)', name='b/2')],
    ) == [('model', 'expected_speed')]

  def test_several_of_a_kind(self):
    assert self._named(
        [
            _record(1.2),
            _record(1.3, name='b/2', gamma_policy='schedule(1, 2)'),
            _record(1.4, gamma_policy='schedule(5)'),
        ]
    ) == [('a/1', 'fixed'), ('b/2', 'schedule(1, 2)'), ('a/1', 'schedule(5)')]
