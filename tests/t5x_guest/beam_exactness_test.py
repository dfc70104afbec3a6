# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark that compares beam searches with T5X's."""

import json

from benchmarks import beam_exactness


def test_all_ways_find_the_same(shared, tmp_path):
  oracle = shared / 't5x_oracle'
  status = beam_exactness.main([
      f'--multi30k={shared / "data/multi30k"}',
      f'--target={oracle / "target/t5x_orbax/checkpoint_2500"}',
      f'--draft={oracle / "draft/t5x_orbax/checkpoint_1500"}',
      '--batch=4', '--inputs=6', f'--output={tmp_path / "line"}',
  ])  # fmt: skip
  line = json.loads((tmp_path / 'line').read_text())
  assert status == 0 and line['num_inputs'] == 6
  for pair in ('t5x_plain', 't5x_speculative', 'plain_speculative'):
    assert line[pair]['identical'] == 6
    assert line[pair]['largest_score_difference'] < 1e-3
