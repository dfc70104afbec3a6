# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables hold the paper's numbers, which agree, and measured ones."""

import dataclasses

import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import published
from tests.research.paper import records


def _pairs(**changes):
  """Return a pair per task and draft of the paper, each as it is there."""
  found = {}
  for row in published.TABLES_2_AND_4:
    record = records.measured(row.gamma, float(row.temperature), **changes)
    found.setdefault((row.task, row.draft), []).append(record)
  return [markdown_tables.MeasuredPair(*key, x) for key, x in found.items()]


class TestTable1:

  def test_a_wrong_number_does_not(self, monkeypatch):
    wrong = published.Factors(0.6, 2, operations=1.53, speed=1.97)
    monkeypatch.setattr(published, 'TABLE_1', (wrong,))
    _, rows = records.cells(markdown_tables.table_1())
    assert [row[-1] for row in rows] == ['no']


class TestTables2And4:

  def test_headline(self):
    """It shows what was expected and measured, over T5X too."""
    reference = {
        'name': 't5x', 'version': '1', 'speedup': 1.5, 'speedup_ci95': [1, 2]
    }  # fmt: skip
    pairs = _pairs(reference=reference)
    page = markdown_tables.tables_2_and_4([], pairs)
    _, (header, rows), _ = records.tables(page)
    first = dict(zip(header, rows[0], strict=True))
    shown = {
        'alpha': '0.70 [0.69, 0.71]', 'c': '0.050', 'EXP': '2.33',
        "paper's EXP": '3.2', 'over plain': '1.01 [0.96, 1.06]',
        'over T5X': '1.50 [1.00, 2.00]', "paper's EMP": '3.4',
    }  # fmt: skip
    assert first == first | shown

  def test_who_chose_gamma(self):
    """Theorem 3.8 chooses 6 at alpha 0.7 and c 0.05 (see `records`)."""

    def chosen(*found):
      pair = markdown_tables.MeasuredPair('a', 'b', found)
      page = markdown_tables.tables_2_and_4([], [pair])
      return [row['gamma'] for row in records.table_with(page, 'efficiency')]

    assert chosen(records.measured(6)) == ['6, given and Theorem 3.8']
    assert chosen(records.measured(5)) == ['5, given']
    # The second one was measured because it was the best when it was chosen.
    both = [records.measured(gamma) for gamma in (6, 7)]
    assert chosen(*both) == ['6, given', '7, Theorem 3.8']
    # Without a cost the theorem has no best gamma.
    free = dataclasses.replace(records.measured(24), c=0.0)
    assert chosen(free) == ['24, given']


class TestTable3:

  @pytest.mark.parametrize(('topk', 'paper'), [(0, '0.62'), (40, None)])
  def test_only_the_same_sampling_is_beside_the_papers(self, topk, paper):
    alpha = run_record.Alpha(0.6543, (0.64, 0.67), num_tokens=10_000)
    record = dataclasses.replace(
        records.measured(3, 1.0), alpha=alpha, gamma=None, topk=topk
    )
    pair = markdown_tables.MeasuredPair('EnDe', 'small', [record])
    page = markdown_tables.table_3([], [pair])
    (row,) = records.table_with(page, '95% interval')
    assert row.get("paper's") == paper
