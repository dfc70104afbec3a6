# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the trace of the loop, and for the walltimes of its rows."""

import itertools
import types
from unittest import mock

import pytest

from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.paper import loop_trace
from tests import tiny

TIMES = step_times.PartTimes(0.012, 0.003, 20.0, 23.0, 2.1, 2.7)


@pytest.mark.parametrize(
    ('walltime_ms', 'commit'),
    # Steps of 2.7 + 2 * 2.1 + 23 = 29.9, and 6 left over or too little.
    [(80.8, [('commit', 3.0)]), (74.0, [])],
)
def test_spans_of_a_row(walltime_ms, commit):
  row = loop_trace.make_row(TIMES, 3, 2, walltime_ms)
  step = [('draft', 2.7), ('draft', 2.1), ('draft', 2.1)]
  step += [('target_step', 23.0), *commit]
  encoders = [('target_input', 12.0), ('draft_input', 3.0)]
  expected = encoders + 2 * step
  assert [span.kind for span in row.spans] == [kind for kind, _ in expected]
  assert [span.duration_ms for span in row.spans] == pytest.approx(
      [duration for _, duration in expected]
  )
  assert row.label == 'γ = 3'
  assert row.spans[0].start_ms == 0
  for span, following in itertools.pairwise(row.spans):
    assert span.end_ms == following.start_ms


def test_walltimes_are_medians(monkeypatch, capsys):
  """The first row is as long as its parts, the second is shorter."""

  def way(num_steps):
    work = types.SimpleNamespace(num_steps=num_steps)
    return lambda _: types.SimpleNamespace(work=work)

  tokens = types.SimpleNamespace(
      gamma=3,
      loaded_drafter=None,
      target=types.SimpleNamespace(config=tiny.config()),
      with_drafter=lambda *_: tokens,
  )
  decoder = types.SimpleNamespace(tokens=tokens)
  monkeypatch.setattr(whole_batches, 'ways', lambda _: (way(20), way(8)))
  monkeypatch.setattr(whole_batches, 'make_batch', lambda _, texts: (texts, 0))
  spans = {20: iter([1.0, 2.0, 9.0]), 8: iter([7.0, 4.0, 5.0])}
  times = step_times.PartTimes(0.0, 0.0, 100.0, 700.0, 10.0, 10.0)
  monkeypatch.setattr(part_programs, 'PartPrograms', mock.Mock())
  parts = mock.Mock(times=lambda: times)
  monkeypatch.setattr(step_times, 'Parts', lambda *_: parts)
  monkeypatch.setattr(
      step_times, 'seconds', lambda run: next(spans[run().work.num_steps])
  )
  plain, speculative = loop_trace.measure(decoder, '', [3], rounds=3)
  assert plain == loop_trace.make_row(times, 0, 20, 2000.0)
  assert speculative == loop_trace.make_row(times, 3, 8, 5000.0)
  assert speculative.walltime_ms == 8 * 730
  assert 'commits are left out' in capsys.readouterr().err
