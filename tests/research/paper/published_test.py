# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's numbers agree with each other, and loading them is cheap."""

import collections

import numpy as np
import pytest

from speculative_t5x.research.paper import published
from speculative_t5x.speculation import theory

_ROWS = published.TABLES_2_AND_4


class TestTables2And4:

  @pytest.mark.parametrize('row', _ROWS)
  def test_predicted_is_theorem_3_8_up_to_rounding(self, row):
    half = np.array([-0.005, 0.005])  # of alpha and c
    low, high = theory.walltime_factor(
        row.alpha + half, row.gamma, row.cost_coefficient - half
    )
    assert low - 0.05 <= row.predicted <= high + 0.05

  def test_the_star_is_at_the_fastest_draft(self):
    groups = collections.defaultdict(list)
    for row in _ROWS:
      groups[row.task, row.temperature].append(row)
    assert len(groups) == 4
    for rows in groups.values():
      fastest = max(rows, key=lambda row: row.measured)
      assert [row for row in rows if row.is_best] == [fastest]

  def test_gammas_and_measured_speeds(self):
    speeds = '3.4 2.8 1.7 2.6 2.4 1.4 3.1 3.0 2.2 2.3 2.2 1.7'.split()
    assert [f'{row.measured:.1f}' for row in _ROWS] == speeds
    gammas = [7, 7, 7, 7, 5, 3, 5, 5, 3, 5, 3, 3]
    assert [row.gamma for row in _ROWS] == gammas


def test_table_3_has_the_alphas_of_table_2():
  alphas = {(row.task, row.draft): row for row in published.TABLE_3}
  assert len(alphas) == len(published.TABLE_3) == 16
  for row in _ROWS:
    found = alphas[row.task, row.draft]
    both = (found.at_temperature_0, found.at_temperature_1)
    assert row.alpha == both[row.temperature]
