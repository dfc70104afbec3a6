# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of progress on a terminal and in a pipe."""

import sys
import threading
import types

import pytest

from speculative_t5x.research import progress


class TestProgress:

  @pytest.fixture
  def clock(self, monkeypatch):
    """Return a clock that the test sets."""
    now = types.SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress.time, 'monotonic', lambda: now.seconds)
    return now

  def test_lines_in_a_pipe(self, clock, capsys):
    with progress.Progress('a [name]', 4) as shown:
      for num_done, seconds in ((1, 109.0), (2, 111.0), (3, 120.0), (4, 115.0)):
        clock.seconds = seconds
        shown.show(num_done)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rsplit(',', 1)[0] for line in lines] == [
        'a [name]: 2 of 4 batches', 'a [name]: 4 of 4 batches'
    ]  # fmt: skip
    assert all(line.endswith(' s left') for line in lines)

  def test_unknown_total(self, clock, capsys):
    with progress.Progress('infer', None) as shown:
      clock.seconds += 11
      shown.show(3)
      shown.show(5)
    lines = [f'infer: batches done: {count}' for count in (3, 5)]
    assert capsys.readouterr().err.splitlines() == lines
    with progress.Progress('infer', None) as shown:
      shown.show(2)
      clock.seconds += 11
      shown.show(3)
      shown.show(4)
      shown.end()
      print('a summary', file=sys.stderr)
    *_, last, summary = capsys.readouterr().err.splitlines()
    assert (last, summary) == ('infer: batches done: 4', 'a summary')
    with progress.Progress('infer', None) as shown:
      shown.show(2)
    assert not capsys.readouterr().err  # it took no time

  def test_bar_on_a_terminal(self, monkeypatch, capsys):
    """The bar is drawn in `show`, not by a thread."""
    monkeypatch.setenv('TTY_COMPATIBLE', '1')
    monkeypatch.setenv('COLUMNS', '80')
    num_threads = threading.active_count()
    with progress.Progress('a [name]', 2) as shown:
      shown.show(1)
      assert threading.active_count() == num_threads
      drawn = capsys.readouterr().err
      assert 'a [name]' in drawn and '1/2' in drawn and '\x1b[' in drawn
      assert capsys.readouterr().err == ''
      shown.show(2)
    assert '2/2' in capsys.readouterr().err
