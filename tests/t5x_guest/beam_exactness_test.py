# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark that compares beam searches with T5X's."""

import json

import numpy as np

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


def test_what_a_line_says():
  tokens = np.arange(3 * 2 * 4).reshape(3, 2, 4)
  scores = np.float32([[-2, -1]] * 3)
  one = beam_exactness.Found(tokens, scores)
  other = beam_exactness.Found(tokens.copy(), scores + np.float32(0.25))
  other.sequences[[0, 2], 1, 3] += 1
  found = beam_exactness.compare(one, other)
  assert found == {
      'identical': 1,
      'largest_score_difference': 0.25,
      'inputs_that_differ': [0, 2],
  }
