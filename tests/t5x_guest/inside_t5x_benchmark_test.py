# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark that decodes in T5X's jobs too."""

from benchmarks import cases
from benchmarks import throughput


def test_all_ways_write_the_same(shared, monkeypatch):
  oracle = shared / 't5x_oracle'
  options = throughput.parse([
      f'--multi30k={shared / "data/multi30k"}',
      f'--target={oracle / "target/t5x_orbax/checkpoint_2500"}',
      f'--draft={oracle / "draft/t5x_orbax/checkpoint_1500"}',
      '--gamma=4', '--inputs=9',
  ])  # fmt: skip
  case = cases.read(options)
  own = throughput.own_ways(options, case, 4)
  expected = own['speculative_whole']().tokens
  from benchmarks import inside_t5x  # needs T5X

  monkeypatch.setattr(inside_t5x, '_UNDER_WAY', 2)  # in two calls
  ways = throughput.t5x_ways(options, case, 4)
  assert list(ways) == ['t5x', 'speculative_in_t5x']
  assert [way().tokens for way in ways.values()] == [expected, expected]
