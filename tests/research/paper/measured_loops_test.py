# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of Figure 5: the walltimes of loops, and loops shorter than parts."""

import types
from unittest import mock

from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.paper import loop_trace
from speculative_t5x.research.paper import measured_loops


def test_walltimes_are_medians(monkeypatch, capsys):
  """The first row is as long as its parts, the second is shorter."""
  way = lambda num_steps: lambda _: types.SimpleNamespace(num_steps=num_steps)
  tokens = types.SimpleNamespace(
      plain=way(20),
      speculative=way(8),
      gamma=3,
      loaded_drafter=None,
      with_drafter=lambda *_: tokens,
  )
  decoder = types.SimpleNamespace(
      tokens=tokens, make_request=lambda texts: (texts, 0)
  )
  spans = {20: iter([1.0, 2.0, 9.0]), 8: iter([7.0, 4.0, 5.0])}
  times = part_sums.StepTimes(0.0, 0.0, 100.0, 700.0, 10.0, 10.0)
  monkeypatch.setattr(part_programs, 'PartPrograms', mock.Mock())
  parts = mock.Mock(times=lambda: times)
  monkeypatch.setattr(step_times, 'Parts', lambda *_: parts)
  monkeypatch.setattr(
      step_times, 'seconds', lambda run: next(spans[run().num_steps])
  )
  plain, speculative = measured_loops.measure(decoder, '', [3], rounds=3)
  assert plain == loop_trace.plain_row(times, 20, 2000.0)
  assert speculative == loop_trace.speculative_row(times, 3, 8, 5000.0)
  assert speculative.walltime_ms == 8 * 730
  assert 'commits are left out' in capsys.readouterr().err
