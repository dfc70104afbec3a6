# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark of draft lengths."""

import types

import numpy as np
import pytest

from benchmarks import draft_lengths
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import part_sums


def _run(seconds, accepted, gamma=3):
  """Returns a run with one block per number of accepted draft tokens."""
  decoded = []
  for each in accepted:
    histogram = np.bincount(each, minlength=gamma + 1)[None]
    decoded.append(
        types.SimpleNamespace(
            num_steps=np.int32(sum(each) + len(each)),
            statistics=types.SimpleNamespace(accepted_histogram=histogram),
        )
    )
  return interleaved.Run(None, tuple(seconds), 0.0, decoded)


def test_oracle_drafts_what_is_accepted():
  """3 blocks of 0, 1 and 3 draft tokens, and one of 2."""
  times = part_sums.PartTimes(
      0.01, 0.005, 1.0, 1.6, 0.1, 0.2, 1.9, (1.0, 1.4, 1.6)
  )
  parts = types.SimpleNamespace(times=lambda: times)
  run = _run([1.0, 1.0], [[0, 1, 3], [2]])
  drafts_ms = 0.2 + 0.4 + 0.3
  calls_ms = 1.0 + 1.4 + 1.6 + 1.6
  plain_s = 2 * 0.01 + (7 + 3) * 1.0 / 1e3
  oracle_s = 2 * 0.015 + (drafts_ms + calls_ms) / 1e3
  found = draft_lengths._oracle_speedup(parts, run, run)
  assert found == pytest.approx(plain_s / oracle_s)
