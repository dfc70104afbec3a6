# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables hold the paper's numbers, which agree, and measured ones."""

import collections
import dataclasses

import numpy as np
import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import digest
from speculative_t5x.speculation import theory
from tests.research.paper import records


def _pairs(**changes):
  """Return a pair per task and draft of the paper, each as it is there."""
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
    rows = records.table_with(
        markdown_tables.table_2([], _pairs()), 'efficiency'
    )
    assert 'over T5X' not in rows[0] and len(rows) == 12
    # 1000 tokens in 10 s and 2 s of encoders, at 80 percent of the bound:
    # 0.8 * 12 / (2.1 + 400 * 18.5 ms).
    assert [*rows[0].values()] == [
        'EnDe', 'small ★', '0', '7, paper', '0.70 [0.69, 0.71]', '10000',
        '0.75', '0.050', '0.02', '2.33', '3.2', '1.01 [0.96, 1.06]', '3.4',
        'no difference shown', '2.50', '3.14', '1.26', '0.80',
    ]  # fmt: skip

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
      _, (header, rows), _ = records.tables(make([], pairs))
      assert bool(added & {*header}) == has == (added <= {*header})
      for name, shown in (
          ('over plain', '1.01 [0.96, 1.06]'), ('over T5X', '1.50 [1.00, 2.00]')
      ):  # fmt: skip
        assert rows[0][header.index(name)] == shown

  def test_who_chose_gamma(self):
    """Theorem 3.8 chooses 6 at alpha 0.7 and c 0.05 (see `records`)."""

    def chosen(*found):
      pair = markdown_tables.Pair('a', 'b', found)
      page = markdown_tables.table_2([], [pair])
      return [row['gamma'] for row in records.table_with(page, 'efficiency')]

    assert chosen(records.measured(6)) == ['6, given and Theorem 3.8']
    assert chosen(records.measured(5)) == ['5, given']
    # The second one was measured because it was the best when it was chosen.
    both = [records.measured(gamma) for gamma in (6, 7)]
    assert chosen(*both) == ['6, given', '7, Theorem 3.8']
    # Without a cost the theorem has no best gamma.
    free = dataclasses.replace(records.measured(24), c=0.0)
    assert chosen(free) == ['24, given']

  def test_each_pair_is_named(self):
    own = records.measured(3, task='mine', inputs_length=9, split='test')
    pair = markdown_tables.Pair('a', 'b', [own])
    for make in (markdown_tables.table_2, markdown_tables.table_3):
      assert records.table_with(make([], [pair]), 'data') == [{
          'task': 'a', 'draft': 'b', 'data': 'mine, test',
          'input / output tokens': '9 / 48',
          'target': 'target/checkpoint_2 11.1B',
          'drafter': 'draft/checkpoint_4 77M', 'dtype': 'bfloat16',
          'examples': '64',
      }]  # fmt: skip

  def test_not_run(self):
    """The paper's rows stand alone, and no row is of dashes."""
    page = markdown_tables.table_2([])
    rows = records.table_with(page, 'EMP')
    for cells, row in zip(rows, published.TABLES_2_AND_4, strict=True):
      assert cells['EMP'] == f'{row.measured:.1f}'
      assert '-' not in cells.values()


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
    (header, rows), (_, papers) = records.tables(page)
    name = (
        'bulletins_ende: draft/checkpoint_4 for target/checkpoint_2, bfloat16'
    )
    assert header == ['drafter', 'T', 'alpha', '95% interval', 'tokens']
    assert rows == [
        [name, '1', '0.654', '[0.640, 0.670]', '10000'],
        [name, '0', '0.100', '-', '9'],
    ]
    assert ['EnDe', 'T5-XXL', 'bigram', '0.20', '0.19'] in papers

  @pytest.mark.parametrize(('topk', 'paper'), [(0, '0.62'), (40, None)])
  def test_only_the_same_sampling_is_beside_the_papers(self, topk, paper):
    alpha = run_record.Alpha(0.6543, (0.64, 0.67), num_tokens=10_000)
    record = dataclasses.replace(
        records.measured(3, 1.0), alpha=alpha, gamma=None, topk=topk
    )
    pair = markdown_tables.Pair('EnDe', 'small', [record])
    page = markdown_tables.table_3([], [pair])
    (row,) = records.table_with(page, '95% interval')
    assert row.get("paper's") == paper


_ROWS = published.TABLES_2_AND_4


class TestPublished:

  @pytest.mark.parametrize('row', _ROWS)
  def test_predicted_is_theorem_3_8_up_to_rounding(self, row):
    half = np.array([-0.005, 0.005])  # of alpha and c
    low, high = theory.walltime_factor(
        row.alpha + half, row.gamma, row.cost_coefficient - half
    )
    assert low - 0.05 <= row.predicted <= high + 0.05

  def test_the_star_is_at_the_fastest_draft(self):
    groups = collections.defaultdict(list)
    for row in _ROWS:
      groups[row.task, row.temperature].append(row)
    assert len(groups) == 4
    for rows in groups.values():
      fastest = max(rows, key=lambda row: row.measured)
      assert [row for row in rows if row.is_best] == [fastest]


def test_table_3_has_the_alphas_of_table_2():
  alphas = {(row.task, row.draft): row for row in published.TABLE_3}
  assert len(alphas) == len(published.TABLE_3) == 16
  for row in _ROWS:
    found = alphas[row.task, row.draft]
    both = (found.at_temperature_0, found.at_temperature_1)
    assert row.alpha == both[row.temperature]
