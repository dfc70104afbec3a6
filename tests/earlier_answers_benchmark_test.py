# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/earlier_answers`: what it measures, and its options."""

import json

import pytest

from benchmarks import earlier_answers
from speculative_t5x.tasks import paraphrases

pytest.importorskip('usearch')


def _first_pairs(read):
  return lambda split: read(split)[:7]


def test_record(tmp_path, capsys, monkeypatch):
  tasks = {'paraphrases': _first_pairs(paraphrases.read_pairs)}
  monkeypatch.setattr(earlier_answers, '_TASKS', tasks)
  path = tmp_path / 'line.json'
  earlier_answers.main(
      ['--gamma=2', '--requests=6', '--repeats=1', f'--output={path}']
  )
  (line,) = capsys.readouterr().out.splitlines()
  assert path.read_text() == f'{line}\n'
  record = json.loads(line)
  assert record['gamma'] == 2 and record['host']['cores'] >= 1
  found = record['paraphrases']
  assert found['requests'] == 6 and found['answers_in_store'] == 7
  assert found['share_with_answer'] > 0.5
  for way in ('plain', 'searched'):
    assert found[way]['tokens_per_target_call'] == 1
  rates = [
      found[way]['tokens_per_target_call'] for way in ('lookup', 'answers')
  ]
  assert 1 < rates[0] < rates[1]
  for way in ('plain', 'searched', 'lookup', 'answers'):
    assert found[way]['different_outputs'] == 0
    low, high = found[way]['speedup_ci95']
    assert low <= found[way]['speedup'] <= high
