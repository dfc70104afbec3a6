# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of arguments of jobs: one value or several, and invalid counts."""

import pytest

from speculative_t5x.research import arguments


@pytest.mark.parametrize(
    ('parse', 'values', 'expected'),
    [
        (arguments.several, 1, [1.0]),
        # Values keep their order, without repetitions.
        (arguments.several, [1.0, 0.0, 1], [1.0, 0.0]),
        (arguments.several_counts, (5, 1, 5), [5, 1]),
        (arguments.several_counts, 2.0, [2]),
    ],
)
def test_several(parse, values, expected):
  found = parse('x', values)
  assert found == expected
  assert [type(x) for x in found] == [type(x) for x in expected]


@pytest.mark.parametrize(
    ('parse', 'values'),
    [
        *((arguments.several, x) for x in ((), None, [0.0, None])),
        *(
            (arguments.several_counts, x)
            for x in (0, 2.5, float('nan'), float('inf'), (3, -1))
        ),
    ],
)
def test_others_are_named(parse, values):
  with pytest.raises(ValueError, match='gamma must be a'):
    parse('gamma', values)


def test_gammas_within_an_output():
  arguments.check_gammas((3, 5), 5)
  with pytest.raises(ValueError, match='gamma 5 is longer'):
    arguments.check_gammas((3, 5), 4)
