# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers of reports, also of records that lack something."""

import json
import pathlib

import pytest

from speculative_t5x.research.ahead_of_time import preflight_report

_RESULTS = pathlib.Path(__file__).parents[3] / 'results/tpu_preflight'


def _read(name):
  return json.loads((_RESULTS / name / 'tpu_preflight.json').read_text())


def test_drafts_that_were_not_compiled():
  """Table 2 has no compiled numbers for them."""
  record = _read('v4_xxl')
  record |= {'pairs': [], 'drafts': [], 't5x_step': None}
  rows = preflight_report.rows_of(record, 'Table 2 of the paper')
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
  row, *_ = preflight_report.rows_of(record, 'Table 2 of the paper')
  found = [row[name] for name in ('compiled', 'over one row', "over T5X's")]
  fast, slow, other = map(float, found)
  assert slow / fast == pytest.approx(1e3, rel=0.3)
  assert other / fast == pytest.approx(10, rel=0.3)
