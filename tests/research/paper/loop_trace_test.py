# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the trace of the loop."""

import collections
import itertools
import json

import pytest

from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.paper import loop_trace

TIMES = part_sums.StepTimes(0.012, 0.003, 20.0, 23.0, 2.1, 2.7)
Kind = loop_trace.Kind


def rows():
  return [
      loop_trace.plain_row(TIMES, 17, 400.0),
      loop_trace.speculative_row(TIMES, 3, 7, 231.0),
      loop_trace.speculative_row(TIMES, 7, 4, 198.7),
  ]


def kinds(row):
  return collections.Counter(span.kind for span in row.spans)


def total_ms(row):
  return sum(span.duration_ms for span in row.spans)


class TestRows:

  @pytest.mark.parametrize('row', rows(), ids=lambda row: row.label)
  def test_spans_follow_each_other(self, row):
    assert row.spans[0].start_ms == 0
    for span, following in itertools.pairwise(row.spans):
      assert span.end_ms == following.start_ms
    assert all(span.duration_ms > 0 for span in row.spans)
    assert row.walltime_ms == pytest.approx(total_ms(row))

  def test_worked(self):
    row = loop_trace.speculative_row(TIMES, 3, 2, 80.8)
    # Encoders 15, steps 2.7 + 2 * 2.1 + 23 = 29.9 each, and 6 left over.
    step = [(Kind.DRAFT, 2.7), (Kind.DRAFT, 2.1), (Kind.DRAFT, 2.1)]
    step += [(Kind.TARGET_STEP, 23.0), (Kind.COMMIT, 3.0)]
    encoders = [(Kind.TARGET_ENCODER, 12.0), (Kind.DRAFT_ENCODER, 3.0)]
    expected = encoders + 2 * step
    assert [span.kind for span in row.spans] == [kind for kind, _ in expected]
    assert [span.duration_ms for span in row.spans] == pytest.approx(
        [duration for _, duration in expected]
    )
    assert row.label == 'γ = 3'

  def test_parts_that_took_longer_leave_commits_out(self):
    row = loop_trace.speculative_row(TIMES, 3, 2, 74.0)
    assert kinds(row) == {
        Kind.TARGET_ENCODER: 1,
        Kind.DRAFT_ENCODER: 1,
        Kind.DRAFT: 6,
        Kind.TARGET_STEP: 2,
    }
    assert row.walltime_ms == pytest.approx(15 + 2 * 29.9)

  def test_rows_gain_what_the_bound_says(self):
    plain = loop_trace.plain_row(TIMES, 40, 0.0)
    row = loop_trace.speculative_row(TIMES, 4, 12, 0.0)
    assert (plain.num_target_calls, row.num_target_calls) == (40, 12)
    bound = part_sums.bound_speedup(
        TIMES, baseline_steps=40, speculative_steps=12, gamma=4
    )
    assert plain.walltime_ms / row.walltime_ms == pytest.approx(bound)


def _bars(axes):
  """(start, end, middle) of every bar that was drawn."""
  extents = [
      path.get_extents()
      for collection in axes.collections
      for path in collection.get_paths()
  ]
  return sorted(((box.y0 + box.y1) / 2, box.x0, box.x1) for box in extents)


class TestDraw:

  def test_bars_are_the_spans_to_scale(self):
    (axes,) = loop_trace.draw(rows()).axes
    expected = [
        (place, span.start_ms, span.end_ms)
        for place, row in enumerate(rows())
        for span in row.spans
    ]
    for bar, span in zip(_bars(axes), sorted(expected), strict=True):
      assert bar == pytest.approx(span)
    assert axes.get_xscale() == 'linear'
    assert 'ms' in axes.get_xlabel()

  def test_rows_are_named_and_counted(self):
    (axes,) = loop_trace.draw(rows()).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ['plain', 'γ = 3', 'γ = 7']
    assert [text.get_text().strip() for text in axes.texts] == [
        '17 target calls',
        '7 target calls',
        '4 target calls',
    ]
    assert [text.get_position() for text in axes.texts] == [
        (row.walltime_ms, place) for place, row in enumerate(rows())
    ]
    assert axes.yaxis_inverted()  # the first row on top


class TestTraceEvents:

  def _spans(self, thread):
    trace = json.loads(json.dumps(loop_trace.to_trace_events(rows())))
    return [
        event
        for event in trace['traceEvents']
        if event['ph'] == 'X' and event['tid'] == thread
    ]

  @pytest.mark.parametrize('place', range(3))
  def test_events_are_the_spans(self, place):
    row, events = rows()[place], self._spans(place + 1)
    assert [event['cat'] for event in events] == [s.kind for s in row.spans]
    for event, following in itertools.pairwise(events):  # whole microseconds
      assert event['ts'] + event['dur'] == following['ts']
    for event, span in zip(events, row.spans, strict=True):
      assert event['ts'] == pytest.approx(1e3 * span.start_ms, abs=0.5)
      assert event['dur'] == pytest.approx(1e3 * span.duration_ms, abs=1)
    end_us = sum(event['dur'] for event in events)
    assert end_us == pytest.approx(1e3 * row.walltime_ms, abs=0.5)
