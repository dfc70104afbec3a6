# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of reports, also of records that lack something."""

import json
import pathlib

import pytest

from speculative_t5x.research.tpu_aot import report

_RESULTS = pathlib.Path(__file__).parents[3] / 'results/tpu_preflight'


def _read(name):
  return json.loads((_RESULTS / name / 'tpu_preflight.json').read_text())


def test_numbers_are_under_their_names():
  record = _read('v4_xxl')
  pair = record['pairs'][0]
  step = pair['loop']['step']
  row, *_ = report.rows_of(record, 'What the loop does')
  assert row['loop'] == f't5_1_1_xxl with {pair["draft"]}'
  assert row['cycles'] == f'{step["cycles"]:,}'
  assert row['scatter trips'] == str(step['scatter_trips'])
  written = step['cache_bytes_written'] / 1e6
  assert row['cache MB written'] == f'{written:.2f}'


def test_drafts_that_were_not_compiled():
  """Table 2 has no compiled numbers for them."""
  record = _read('v4_xxl')
  record |= {'pairs': [], 'drafts': [], 't5x_step': None}
  rows = report.rows_of(record, 'Table 2 of the paper')
  assert len(rows) == 12
  for row in rows:
    names = 'c compiled', 'c one row', 'compiled', 'over one row', "over T5X's"
    assert {row[name] for name in names} == {'-'}
    assert float(row['c by roofline']) > 0


def test_speedup_is_over_the_faster_form():
  """And over T5X's own step, where it was compiled."""
  record = _read('v4_xxl')
  steps = record['target']['steps']
  steps['one_row']['step']['cycles'] = 10**9
  steps['padded']['step']['cycles'] = 10**6
  record['t5x_step'] = {'step': {**steps['padded']['step'], 'cycles': 10**7}}
  record['t5x_step']['step_s'] = None
  row, *_ = report.rows_of(record, 'Table 2 of the paper')
  found = [row[name] for name in ('compiled', 'over one row', "over T5X's")]
  fast, slow, other = map(float, found)
  assert slow / fast == pytest.approx(1e3, rel=0.3)
  assert other / fast == pytest.approx(10, rel=0.3)


def test_other_drafts_stand_at_the_rows_of_small():
  record = _read('v4_xxl_shared')
  gammas = [pair['gamma'] for pair in record['pairs']]
  small = [
      row
      for row in record['table_2']
      if row['draft'] == 'small' and row['gamma'] in gammas
  ]
  pairs = list(report.table_2_pairs(record))
  for draft in record['drafts']:
    found = [row for row, pair in pairs if pair['draft'] == draft['name']]
    assert found == small
  rows = report.rows_of(record, 'Table 2 of the paper')
  assert len(rows) == 12 + len(small) * (len(record['drafts']) - 1)
  one, other = rows[0], rows[-1]
  assert other['draft'] == record['drafts'][-1]['name']
  assert (other["the paper's c"], other['roofline']) == ('-', '-')
  assert float(one['compiled']) > 0 and float(other['compiled']) > 0
