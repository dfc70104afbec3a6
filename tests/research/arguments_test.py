# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of arguments of jobs: one value or several, and invalid counts."""

import pytest

from speculative_t5x.research import arguments


class TestSeveral:

  @pytest.mark.parametrize(
      ('values', 'expected'),
      [
          (0.5, [0.5]), (1, [1.0]), ((0.0, 1.0), [0.0, 1.0]),
          # Values keep their order, without repetitions.
          ([1.0, 0.0, 1], [1.0, 0.0]),
      ],
  )  # fmt: skip
  def test_a_list_of_floats(self, values, expected):
    found = arguments.several('temperature', values)
    assert found == expected
    assert all(type(value) is float for value in found)

  @pytest.mark.parametrize('values', [(), None, [0.0, None], float('nan')])
  def test_others_are_named(self, values):
    with pytest.raises(ValueError, match='temperature must be a number or'):
      arguments.several('temperature', values)


class TestSeveralCounts:

  @pytest.mark.parametrize(
      ('values', 'expected'), [(3, [3]), ((5, 1, 5), [5, 1]), (2.0, [2])]
  )
  def test_a_list_of_ints(self, values, expected):
    found = arguments.several_counts('gamma', values)
    assert found == expected
    assert all(type(value) is int for value in found)

  @pytest.mark.parametrize(
      'values', [0, (1, 0), 2.5, float('nan'), float('inf'), (3, -1)]
  )
  def test_others_are_named(self, values):
    with pytest.raises(ValueError, match='gamma must be a'):
      arguments.several_counts('gamma', values)
