# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables hold the paper's numbers and those that were measured."""

import dataclasses

from speculative_t5x.research import run_record
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import digest
from tests.research.paper import records


def _pairing(**changes):
  return [
      (row, records.measured(row.gamma, row.temperature, **changes))
      for row in published.TABLES_2_AND_4
  ]


class TestTable1:

  def test_all_rows_agree(self):
    _, rows = records.cells(markdown_tables.table_1())
    assert [row[-1] for row in rows] == ['yes'] * 6
    assert rows[-1] == ['0.9', '10', '1.6031', '1.60', '6.8619', '6.86', 'yes']

  def test_a_wrong_number_does_not(self, monkeypatch):
    wrong = published.Factors(0.6, 2, operations=1.53, speed=1.97)
    monkeypatch.setattr(published, 'TABLE_1', (wrong,))
    _, rows = records.cells(markdown_tables.table_1())
    assert [row[-1] for row in rows] == ['no']


class TestTables2And4:

  def test_a_row(self):
    _, rows = records.cells(markdown_tables.tables_2_and_4(_pairing()))
    assert len(rows) == 12
    row = rows[0]
    why = row.pop()
    # 1000 tokens in 10 s and 2 s of encoders, at 80 percent of the bound:
    # 0.8 * 12 / (2.1 + 400 * 18.5 ms).
    assert row == [
        'EnDe', 'small ★', '0', '7', 'measured', '0.70', '0.75', '0.050',
        '0.02', '2.33', '3.2', '1.01 [0.96, 1.06]', '3.4',
        'no difference shown', '2.50', '3.14', '1.26', '0.80',
    ]  # fmt: skip
    assert why.startswith('verification takes 1.5 target steps (x0.73); 2.50')

  def test_not_run(self):
    pairing = [(row, None) for row in published.TABLES_2_AND_4]
    table = markdown_tables.tables_2_and_4(pairing)
    assert table.startswith('Nothing was run.')
    header, rows = records.cells(table)
    for cells, row in zip(rows, published.TABLES_2_AND_4):
      assert cells[header.index('acceptance')] == 'not run'
      assert cells[header.index('EMP')] == '-'
      assert cells[header.index('EMP') + 1] == f'{row.measured:.1f}'
      assert cells.count('-') == 10


class TestTable3:

  def test_rows(self):
    estimate = run_record.Alpha(0.6543, (0.64, 0.67), num_tokens=10_000)
    single = run_record.Alpha(0.1, None, num_tokens=9)
    known = [
        dataclasses.replace(records.measured(3, temperature), alpha=alpha)
        for temperature, alpha in ((1.0, estimate), (0.0, single))
    ]
    page = markdown_tables.table_3(known)
    assert page.splitlines()[-1] == f'<!-- {digest.note(known)} -->'
    _, rows = records.cells(page)
    name = (
        'bulletins_ende: draft/checkpoint_4 for target/checkpoint_2, bfloat16'
    )
    assert rows[:2] == [
        [name, '1', '0.654', '[0.640, 0.670]', '10000', '-'],
        [name, '0', '0.100', '-', '9', '-'],
    ]
    bigram = ['EnDe: bigram, for T5-XXL', '1', '-', '-', '-', '0.19']
    assert bigram in rows[2:]


class TestPairSimulated:

  def test_each_record_is_with_its_row(self):
    rows = published.TABLES_2_AND_4
    drafter = records.simulated().drafter
    found = [
        records.simulated(
            row.alpha,
            gamma=row.gamma,
            temperature=float(row.temperature),
            drafter=dataclasses.asdict(
                dataclasses.replace(drafter, name=f't5_1_1_{row.draft}')
            ),
        )
        for row in rows[1:]
    ]
    pairing = markdown_tables.pair_simulated(reversed(found))
    assert pairing == [*zip(rows, [None, *found])]
