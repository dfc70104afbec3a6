# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the times of loops whose drafts may be short."""

import pytest

from speculative_t5x.research.measurement import step_times

WIDTHS = 1, 2, 4, 6
WIDTH_MS = 10.0, 14.0, 15.0, 17.0
TIMES = step_times.PartTimes(0.5, 0.25, 10.0, 16.0, 1.0, 2.0, 20.0, WIDTH_MS)


def seconds(drafts) -> float:
  """Return the time of blocks with so many draft tokens, one by one."""
  total_ms = 0.0
  for count in drafts:
    total_ms += WIDTH_MS[min(i for i, w in enumerate(WIDTHS) if w > count)]
    total_ms += 2.0 + (count - 1) * 1.0 if count else 0.0
  return 0.75 + total_ms / 1e3


class TestSpeculativeSeconds:

  def test_is_the_sum_over_the_blocks(self):
    drafts = [0, 0, 1, 2, 3, 5, 4, 1]
    calls = [sum(min(w for w in WIDTHS if w > d) == x for d in drafts)
             for x in WIDTHS]  # fmt: skip
    assert calls == [2, 2, 2, 2]
    found = TIMES.speculative_seconds(sum(drafts), calls)
    assert found == pytest.approx(seconds(drafts))

  @pytest.mark.parametrize(('draft_steps', 'first'), [(35, 7), (3, 3)])
  def test_one_width(self, draft_steps, first):
    """Of seven calls, all have a draft, or three have one token each."""
    found = TIMES.speculative_seconds(draft_steps, [7])
    draft_ms = 2.0 * first + 1.0 * (draft_steps - first)
    assert found == pytest.approx(0.75 + (draft_ms + 7 * 16.0) / 1e3)
