# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cap of drafts follows what steps cost and what is accepted."""

import numpy as np
import pytest

from speculative_t5x.policies import by_load

GAMMA = 7


def load(seconds):
  """Return a load that has measured seconds per step by cap."""
  found = by_load.Load(GAMMA)
  while found.is_measuring:
    cap = found.choose()
    found.add(cap, 0, np.zeros(GAMMA), seconds[cap])
  return found


def run(load, alpha, count=300):
  """Return the caps of steps in which each draft token is accepted by alpha."""
  caps = []
  for _ in range(count):
    caps.append(load.choose())
    load.add(caps[-1], 8, 8 * alpha ** np.arange(1, GAMMA + 1), None)
  return caps


def test_each_cap_is_measured_equally_often_and_in_turn():
  found, caps = by_load.Load(GAMMA), []
  while found.is_measuring:
    caps.append(found.choose())
    found.add(caps[-1], 8, np.zeros(GAMMA), 1.0)
  assert found.caps == [0, 1, 3, 7]
  assert caps == found.caps * (len(caps) // 4)


def test_a_busy_moment_does_not_set_a_cost():
  found = by_load.Load(GAMMA)
  slow = iter([9.0] + [1.0] * 99)
  while found.is_measuring:
    found.add(found.choose(), 8, np.zeros(GAMMA), next(slow))
  assert set(found.costs.values()) == {1.0}


@pytest.mark.parametrize(
    ('seconds', 'alpha', 'expected'),
    [
        # Steps that cost the same at each width: a TPU with few rows.
        ({0: 1.0, 1: 1.0, 3: 1.02, 7: 1.05}, 0.9, 7),
        ({0: 1.0, 1: 1.1, 3: 1.3, 7: 3.0}, 0.7, 3),
        # Milliseconds by width 1, 2, 4, 8 with many rows, as another engine has
        # reported them: no draft pays.
        ({0: 8.5, 1: 13.5, 3: 20.7, 7: 40.0}, 0.5, 0),
        ({0: 1.0, 1: 1.1, 3: 1.3, 7: 3.0}, 0.0, 0),
    ],
)
def test_the_cap_with_the_most_tokens_per_second(seconds, alpha, expected):
  caps = run(load(seconds), alpha)
  assert set(caps[-50:]) <= {expected, GAMMA}  # now and then it looks again
  assert caps[-50:].count(expected) >= 49


def test_back_to_plain_and_to_drafts_again():
  found = load({0: 1.0, 1: 1.1, 3: 1.3, 7: 2.0})
  assert run(found, 0.9)[-1] == 7
  assert run(found, 0.05)[-1] == 0
  assert run(found, 0.9, 3000)[-1] == 7


def test_no_change_for_less_than_it_may_cost():
  found = load({0: 1.0, 1: 1.49, 3: 9.0, 7: 9.0})
  found.cap = 0
  assert set(run(found, 0.5)) <= {0, GAMMA}
