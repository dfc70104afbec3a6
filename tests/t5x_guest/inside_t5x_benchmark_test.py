# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark of decoding in T5X's jobs."""

import json
import types

import numpy as np
import pytest

from benchmarks import inside_t5x
from benchmarks.side_by_side import measuring


def test_ways_take_turns_and_are_compared_by_rounds(monkeypatch):
  called, now = [], [0.0]
  clock = types.SimpleNamespace(
      sleep=lambda seconds: None, perf_counter=lambda: now[0]
  )
  monkeypatch.setattr(inside_t5x, 'time', clock)

  def way(name, seconds):
    def decode(inputs):
      called.append(name)
      now[0] += seconds
      return inputs

    return decode

  ways = {'slow': way('slow', 0.03), 'fast': way('fast', 0.003)}
  rounds = [np.array([[5, 6, 1, 0]] * 2)] * 6
  timings = inside_t5x.measure(ways, rounds, repeats=2)
  assert len(called) == 2 + 6 * 2 * 2  # the first two are not timed
  assert timings['slow'].written == [(5, 6)] * 12
  found, (low, high) = inside_t5x.ratio(timings['slow'], timings['fast'])
  assert found == pytest.approx(10)
  assert (low, high) == pytest.approx((10, 10))
  one, other = measuring.Timings([(1, 9, 2)]), measuring.Timings([(1, 1, 0)])
  assert inside_t5x.ratio(one, other) == (2, None)


def test_all_ways_write_the_same(shared):
  oracle = shared / 't5x_oracle'
  options = inside_t5x.parse([
      f'--multi30k={shared / "data/multi30k"}',
      f'--target={oracle / "target/t5x_orbax/checkpoint_2500"}',
      f'--draft={oracle / "draft/t5x_orbax/checkpoint_1500"}',
      '--gamma=4', '--batch=4', '--inputs=9', '--turn=1',
  ])  # fmt: skip
  record = json.loads(inside_t5x.run(options))
  assert (record['num_inputs'], record['rounds']) == (8, 2)
  assert record['outputs_that_differ'] == 0
  assert record['walltime_s'].keys() == {
      't5x', 'speculative_in_t5x', 'speculative'
  }  # fmt: skip
