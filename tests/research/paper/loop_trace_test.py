# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the trace of the loop."""

import collections
import io
import itertools
import json

from matplotlib import colors
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

  @pytest.mark.parametrize('walltime_ms', [300.0, 1e4])
  def test_durations_sum_to_the_walltime(self, walltime_ms):
    plain = loop_trace.plain_row(TIMES, 9, walltime_ms)
    row = loop_trace.speculative_row(TIMES, 5, 6, walltime_ms)
    assert total_ms(plain) == pytest.approx(walltime_ms)
    assert total_ms(row) == pytest.approx(walltime_ms)

  @pytest.mark.parametrize('gamma', [1, 2, 7])
  @pytest.mark.parametrize('num_calls', [1, 5])
  def test_counts(self, gamma, num_calls):
    row = loop_trace.speculative_row(TIMES, gamma, num_calls, 1e4)
    assert kinds(row) == {
        Kind.TARGET_ENCODER: 1,
        Kind.DRAFT_ENCODER: 1,
        Kind.DRAFT: gamma * num_calls,
        Kind.TARGET_STEP: num_calls,
        Kind.COMMIT: num_calls,
    }
    assert row.num_target_calls == num_calls

  def test_plain_counts(self):
    row = loop_trace.plain_row(TIMES, 17)
    assert kinds(row) == {Kind.TARGET_ENCODER: 1, Kind.TARGET_STEP: 17}
    assert row.num_target_calls == 17
    assert row.walltime_ms == pytest.approx(12 + 17 * 20)

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

  def test_without_a_walltime_there_is_no_commit(self):
    row = loop_trace.speculative_row(TIMES, 3, 2)
    assert Kind.COMMIT not in kinds(row)
    assert row.walltime_ms == pytest.approx(15 + 2 * 29.9)

  def test_rows_gain_what_the_bound_says(self):
    plain = loop_trace.plain_row(TIMES, 40)
    row = loop_trace.speculative_row(TIMES, 4, 12)
    bound = part_sums.bound_speedup(
        TIMES, baseline_steps=40, speculative_steps=12, gamma=4
    )
    assert plain.walltime_ms / row.walltime_ms == pytest.approx(bound)

  def test_no_loop_costs_beyond_its_parts(self):
    walltime_ms = loop_trace.speculative_row(TIMES, 6, 11).walltime_ms
    row = loop_trace.speculative_row(TIMES, 6, 11, walltime_ms)
    commits = [s.duration_ms for s in row.spans if s.kind == Kind.COMMIT]
    assert commits == pytest.approx([0] * 11)
    assert min(commits) >= 0

  @pytest.mark.parametrize('walltime_ms', [74.7, 0.0, float('nan')])
  def test_walltime_below_its_parts(self, walltime_ms):
    with pytest.raises(ValueError, match='walltime_ms of "γ = 3".*74.8; got'):
      loop_trace.speculative_row(TIMES, 3, 2, walltime_ms)

  @pytest.mark.parametrize(
      ('name', 'make'),
      [
          ('num_tokens', lambda: loop_trace.plain_row(TIMES, 0)),
          ('gamma', lambda: loop_trace.speculative_row(TIMES, 0, 1)),
          ('num_calls', lambda: loop_trace.speculative_row(TIMES, 1, 0)),
      ],
  )
  def test_counts_below_one(self, name, make):
    with pytest.raises(ValueError, match=f'{name} must be at least 1, got 0'):
      make()


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

  @pytest.mark.parametrize(
      'drawn', [rows(), rows()[:1], [loop_trace.plain_row(TIMES, 400)]]
  )
  def test_everything_is_on_the_page(self, drawn):
    fig = loop_trace.draw(drawn)
    fig.draw_without_rendering()
    (axes,) = fig.axes
    width, height = fig.get_size_inches() * fig.dpi
    assert fig.get_figwidth() == 6.75
    (legend,) = fig.legends
    ticks = [*axes.get_yticklabels(), axes.xaxis.label]
    for artist in (*axes.texts, *ticks, legend):
      box = artist.get_window_extent()
      assert 0 <= box.x0 and box.x1 <= width, artist
      assert 0 <= box.y0 and box.y1 <= height, artist

  def test_legend_has_what_is_there(self):
    (legend,) = loop_trace.draw([loop_trace.plain_row(TIMES, 3)]).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        'target encoder',
        'target step',
    ]
    (legend,) = loop_trace.draw(rows()).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        'target encoder', 'draft encoder', 'draft step', 'target step',
        'commit and rest of a step',
    ]  # fmt: skip
    assert len(Kind) == 5

  def test_kinds_differ_in_grey(self):
    looks = [loop_trace._LOOKS[kind] for kind in Kind]
    for one, other in itertools.combinations(looks, 2):
      is_apart = abs(_grey(one.colour) - _grey(other.colour)) > 0.15
      assert is_apart or one.hatch != other.hatch

  def test_edges_do_not_cover_thin_bars(self):
    row = loop_trace.speculative_row(TIMES, 7, 40)
    (axes,) = loop_trace.draw([row]).axes
    points_per_unit = 72 * 6.75 / axes.get_xlim()[1]
    for collection in axes.collections:
      for path, edge in zip(
          collection.get_paths(), collection.get_linewidth(), strict=True
      ):
        assert edge <= 0.2 * points_per_unit * path.get_extents().width

  @pytest.mark.parametrize('form', ['png', 'pdf', 'svg'])
  def test_is_written(self, form):
    file = io.BytesIO()
    loop_trace.draw(rows()).savefig(file, format=form)
    assert file.getvalue()

  def test_no_row(self):
    with pytest.raises(ValueError, match='at least one row'):
      loop_trace.draw([])


def _grey(colour):
  return sum(
      w * x for w, x in zip((0.299, 0.587, 0.114), colors.to_rgb(colour))
  )


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
    for event, span in zip(events, row.spans, strict=True):
      assert event['ts'] == pytest.approx(1e3 * span.start_ms, abs=0.5)
      assert event['dur'] == pytest.approx(1e3 * span.duration_ms, abs=1)
    end_us = sum(event['dur'] for event in events)
    assert end_us == pytest.approx(1e3 * row.walltime_ms, abs=0.5)

  @pytest.mark.parametrize('place', range(3))
  def test_events_touch_and_do_not_overlap(self, place):
    events = self._spans(place + 1)
    for event in events:
      assert isinstance(event['ts'], int) and isinstance(event['dur'], int)
    for event, following in itertools.pairwise(events):
      assert event['ts'] + event['dur'] == following['ts']

  def test_threads_are_named_in_order(self):
    trace = loop_trace.to_trace_events(rows())
    names = [
        (event['tid'], event['args']['name'])
        for event in trace['traceEvents']
        if event['name'] == 'thread_name'
    ]
    assert names == [
        (1, 'plain, target calls: 17'),
        (2, 'γ = 3, target calls: 7'),
        (3, 'γ = 7, target calls: 4'),
    ]
    order = [
        (event['tid'], event['args']['sort_index'])
        for event in trace['traceEvents']
        if event['name'] == 'thread_sort_index'
    ]
    assert order == [(1, 1), (2, 2), (3, 3)]
    assert trace['displayTimeUnit'] == 'ms'
