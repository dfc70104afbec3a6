# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables hold the paper's numbers and those that were measured."""

import dataclasses

import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import digest
from tests.research.paper import records


def _pairs(**changes):
  """A pair per task and draft of the paper, each as it is there."""
  found = {}
  for row in published.TABLES_2_AND_4:
    record = records.measured(row.gamma, float(row.temperature), **changes)
    found.setdefault((row.task, row.draft), []).append(record)
  return [markdown_tables.Pair(*key, each) for key, each in found.items()]


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
    header, rows = records.cells(markdown_tables.table_2([], _pairs()))
    assert 'over T5X' not in header
    assert len(rows) == 12
    row = rows[0]
    why = row.pop()
    # 1000 tokens in 10 s and 2 s of encoders, at 80 percent of the bound:
    # 0.8 * 12 / (2.1 + 400 * 18.5 ms).
    assert row == [
        'EnDe', 'small ★', '0', '7, paper', 'measured', '0.70', '0.75', '0.050',
        '0.02', '2.33', '3.2', '1.01 [0.96, 1.06]', '3.4',
        'no difference shown', '2.50', '3.14', '1.26', '0.80',
    ]  # fmt: skip
    assert why.startswith('verification takes 1.5 target steps (x0.73); 2.50')

  def test_headlines(self):
    """Table 4 shows what was expected too, both what T5X took."""
    reference = {
        'name': 't5x', 'version': '1', 'speedup': 1.5, 'speedup_ci95': [1, 2]
    }  # fmt: skip
    pairs = _pairs(reference=reference)
    added = {'alpha', 'c', 'EXP', "paper's EXP"}
    for make, has in (
        (markdown_tables.table_2, False), (markdown_tables.table_4, True)
    ):  # fmt: skip
      headline = make([], pairs).partition('\n\nDetails:')[0]
      header, rows = records.cells(headline)
      assert bool(added & {*header}) == has == (added <= {*header})
      for name, shown in (
          ('over plain', '1.01 [0.96, 1.06]'), ('over T5X', '1.50 [1.00, 2.00]')
      ):  # fmt: skip
        assert rows[0][header.index(name)] == shown

  def test_who_chose_gamma(self):
    """Theorem 3.8 chooses 6 at alpha 0.7 and c 0.05 (see `records`)."""
    for gamma, chosen in ((6, 'given and Theorem 3.8'), (5, 'given')):
      pair = markdown_tables.Pair('a', 'b', [records.measured(gamma)])
      _, rows = records.cells(markdown_tables.table_2([], [pair]))
      assert rows[12][3] == f'{gamma}, {chosen}'
    # The second one was measured because it was the best when it was chosen.
    both = [records.measured(gamma) for gamma in (6, 7)]
    pair = markdown_tables.Pair('a', 'b', both)
    _, rows = records.cells(markdown_tables.table_2([], [pair]))
    assert [row[3] for row in rows[12:]] == ['6, given', '7, Theorem 3.8']

  def test_not_run(self):
    table = markdown_tables.table_2([])
    assert table.startswith('Nothing was run.')
    header, rows = records.cells(table)
    for cells, row in zip(rows, published.TABLES_2_AND_4, strict=True):
      assert cells[header.index('acceptance')] == 'not run'
      assert cells[header.index('over plain')] == '-'
      assert cells[header.index("paper's EMP")] == f'{row.measured:.1f}'
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

  @pytest.mark.parametrize(
      ('topk', 'start', 'paper'),
      [(0, 'EnDe: small', '0.62'), (40, 'EnDe: small, topk 40', '-')],
  )
  def test_only_the_same_sampling_is_beside_the_papers(
      self, topk, start, paper
  ):
    alpha = run_record.Alpha(0.6543, (0.64, 0.67), num_tokens=10_000)
    record = dataclasses.replace(
        records.measured(3, 1.0), alpha=alpha, gamma=None, topk=topk
    )
    pair = markdown_tables.Pair('EnDe', 'small', [record])
    _, (row, *_) = records.cells(markdown_tables.table_3([], [pair]))
    assert (row[0], row[-1]) == (start, paper)
