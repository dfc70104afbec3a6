# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The gamma to take, and how it is said."""

import dataclasses
import re

import pytest

from speculative_t5x.research.reports import advice
from tests.research.paper import records


def record(gamma, speedup=1.5, interval=(1.4, 1.6)):
  return dataclasses.replace(
      records.measured(gamma), speedup=speedup, speedup_ci95=interval
  )


class TestBest:

  def test_no_run_gains(self):
    speedups = {1: 0.93, 2: 0.9, 3: 0.9}
    runs = [
        record(gamma, speedup=speedup, interval=(0.8, 0.95))
        for gamma, speedup in speedups.items()
    ]
    assert advice.best(runs) is runs[0]

  def test_a_gain_that_is_shown_counts_more_than_a_larger_one(self):
    uncertain = record(1, speedup=1.5, interval=(0.9, 2.1))
    shown = record(2, speedup=1.2, interval=(1.1, 1.3))
    assert advice.best([uncertain, shown]) is shown


@pytest.mark.parametrize(
    ('interval', 'words'),
    [
        ((1.02, 1.2), 'use gamma 3: 1.10x measured'),
        ((0.8, 0.9), 'decode plainly.* does not pay'),
        ((1.0, 1.3), 'shows no gain.* 1.10x measured'),
        ((0.5, 1.0), 'shows no gain.* 1.10x measured'),
        (None, 'too few batches .* 1.10x measured'),
    ],
)
def test_no_gain_is_claimed_that_was_not_measured(interval, words):
  run = record(3, speedup=1.1, interval=interval)
  found = advice.describe_advice(run)
  assert re.search(words, found) and found.count('1.10x') == 1


def test_costs_are_of_the_largest_gamma():
  times = {'c': 0.05, 't_width_ms': (2.0, 2.8, 3.0, 3.5)}
  runs = [dataclasses.replace(record(gamma), **times) for gamma in (7, 3)]
  text = advice.describe_costs(runs)
  assert ' c=0.05, ' in text
  assert 'verify_cost_ratio={2: 1.40, 4: 1.50, 8: 1.75}' in text
