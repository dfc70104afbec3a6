# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of Figure 5: the walltimes of loops, and loops shorter than parts."""

import types
from unittest import mock

from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.paper import loop_trace
from speculative_t5x.research.paper import measured_loops


def test_walltimes_are_medians(monkeypatch):
  way = lambda num_steps: lambda _: types.SimpleNamespace(num_steps=num_steps)
  decoder = types.SimpleNamespace(plain=way(20), speculative=way(8), gamma=3)
  spans = {20: iter([1.0, 2.0, 9.0]), 8: iter([7.0, 4.0, 5.0])}
  monkeypatch.setattr(part_programs, 'PartPrograms', mock.Mock())
  monkeypatch.setattr(step_times, 'Parts', mock.Mock())
  monkeypatch.setattr(
      step_times, 'seconds', lambda run: next(spans[run().num_steps])
  )
  monkeypatch.setattr(loop_trace, 'plain_row', lambda times, *row: row)
  monkeypatch.setattr(
      loop_trace, 'speculative_row', lambda times, gamma, *row: (gamma, *row)
  )
  rows = measured_loops._measure([decoder], 'a request', rounds=3)
  assert rows == [(20, 2000.0), (3, 8, 5000.0)]


def test_parts_that_took_longer_than_their_run(capsys):
  def make(num_steps, walltime_ms=None):
    if walltime_ms is not None:
      raise ValueError('too short')
    return num_steps

  assert measured_loops._row(make, 7, 1.0) == 7
  assert 'commits are left out' in capsys.readouterr().err
