# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the run record: its keys, its JSON, and other versions of it."""

import json
import pathlib

import pytest

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import runs

_ROOT = pathlib.Path(__file__).parents[2]
_RESULTS = [*(_ROOT / 'results').rglob('*.jsonl')]


def test_keys_are_explained():
  page = (_ROOT / 'docs/run_record.md').read_text()
  assert not [key for key in run_record.KEYS if f'`{key}`' not in page]


class TestToJson:

  def test_one_line_that_reads_back(self):
    record = run_record.RunRecord(
        task='Übersetzung\nzwei',
        target=descriptions.ModelDescription('a', None, 5, 'float32'),
        verification=run_record.Verification('tokenwise'),
        mesh={'data': 2, 'model': 1},
        speedup_ci95=(1.0, 1.5),
        compile_s=run_record.BothRuns(0.5, None),
        quality=run_record.BothRuns({'bleu': 1.0}, {'bleu': 2.0}),
    )
    line = run_record.to_json(record)
    assert '\n' not in line and 'Ü' in line
    assert run_record.from_dict(json.loads(line)) == record

  def test_not_finite(self):
    with pytest.raises(ValueError, match='not JSON compliant'):
      run_record.to_json(run_record.RunRecord(speedup=float('inf')))


class TestFromDict:

  @pytest.mark.parametrize('path', _RESULTS, ids=lambda path: path.stem)
  def test_reproduces_the_records_of_results(self, path):
    """Also of records that lack keys of today, or have some of before."""
    for line, record in zip(
        path.read_text()[:-1].split('\n'), runs.read(path), strict=True
    ):
      values = _without_nulls(json.loads(line))
      values = {k: x for k, x in values.items() if k in run_record.KEYS}
      written = _without_nulls(json.loads(run_record.to_json(record)))
      assert written == values
      known = [key for key in run_record.KEYS if key in values]
      assert [*written] == known

  def test_missing_keys_are_none_and_unknown_keys_ignored(self):
    values = {'gamma': 3, 'other': 1, 'host': {'cpu': 'x', 'sockets': 2}}
    assert run_record.from_dict(values) == run_record.RunRecord(
        schema_version=None, gamma=3, host=run_record.Host('x', None)
    )


def _without_nulls(values):
  if not isinstance(values, dict):
    return values
  return {k: _without_nulls(v) for k, v in values.items() if v is not None}
