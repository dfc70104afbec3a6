# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the times of loops whose drafts may be short."""

import numpy as np
import pytest

from speculative_t5x.research.measurement import part_sums

GAMMA = 5
WIDTHS = 1, 2, 4, 6
WIDTH_MS = 10.0, 14.0, 15.0, 17.0
TIMES = part_sums.StepTimes(0.5, 0.25, 10.0, 16.0, 1.0, 2.0)


def seconds(drafts) -> float:
  """Returns the time of blocks with so many draft tokens, one by one."""
  total_ms = 0.0
  for count in drafts:
    total_ms += WIDTH_MS[min(i for i, w in enumerate(WIDTHS) if w > count)]
    total_ms += 2.0 + (count - 1) * 1.0 if count else 0.0
  return 0.75 + total_ms / 1e3


class TestAdaptiveSeconds:

  def test_is_the_sum_over_the_blocks(self):
    drafts = [0, 0, 1, 2, 3, 5, 4, 1]
    calls = [sum(min(w for w in WIDTHS if w > d) == x for d in drafts)
             for x in WIDTHS]  # fmt: skip
    assert calls == [2, 2, 2, 2]
    found = part_sums.adaptive_seconds(
        TIMES, sum(drafts), np.array(calls), WIDTH_MS
    )
    assert found == pytest.approx(seconds(drafts))

  def test_one_width_is_the_loop_of_the_paper(self):
    found = part_sums.adaptive_seconds(
        TIMES, 7 * GAMMA, np.array([7]), [TIMES.t_verify_ms]
    )
    expected = part_sums.speculative_seconds(TIMES, 7, GAMMA)
    assert found == pytest.approx(expected)

  def test_one_width_and_calls_without_a_draft(self):
    """Each of three draft tokens is the first one of its block."""
    found = part_sums.adaptive_seconds(TIMES, 3, np.array([7]), [5.0])
    draft_ms = 3 * TIMES.t_draft2_ms
    assert found == pytest.approx(0.75 + (draft_ms + 7 * 5.0) / 1e3)


class TestOracleSeconds:

  def test_drafts_what_is_accepted(self):
    accepted = [0, 0, 0, 1, 2, 2, 3, 5, 5]
    histogram = np.bincount(accepted, minlength=GAMMA + 1)
    found = part_sums.oracle_seconds(TIMES, histogram, WIDTH_MS)
    assert found == pytest.approx(seconds(accepted))

  def test_is_the_fastest_choice_of_lengths(self):
    """Other drafts of the same blocks commit less, or take longer."""
    accepted = [4, 1, 0, 5, 2]
    histogram = np.bincount(accepted, minlength=GAMMA + 1)
    oracle = part_sums.oracle_seconds(TIMES, histogram, WIDTH_MS)
    for gamma in range(1, GAMMA + 1):
      tokens = np.minimum(accepted, gamma) + 1
      fixed = seconds([gamma] * len(accepted))
      all_tokens = sum(accepted) + len(accepted)
      assert fixed * all_tokens / tokens.sum() > oracle
