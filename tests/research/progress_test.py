# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of progress on a terminal and in a pipe, and of dropped interrupts."""

from concurrent import futures
import contextlib
import signal
import sys
import threading
import types

import pytest

from speculative_t5x.jobs.command_line import flags
from speculative_t5x.jobs.command_line import gin_job
from speculative_t5x.jobs.command_line import macro_names
from speculative_t5x.jobs.command_line import main
from speculative_t5x.research import interruption
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

  @pytest.mark.parametrize('is_terminal', [False, True])
  def test_interrupt_ends_the_bar(self, monkeypatch, capsys, is_terminal):
    monkeypatch.setenv('TTY_COMPATIBLE', str(int(is_terminal)))
    monkeypatch.setattr(progress.interruption, '_was_interrupted', True)
    with pytest.raises(KeyboardInterrupt):
      with progress.Progress('', 2) as shown:
        shown.show(1)
    if is_terminal:
      assert '\x1b[?25h' in capsys.readouterr().err  # the cursor is back


def interrupt_where_it_is_dropped():
  with contextlib.suppress(KeyboardInterrupt):
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def default_handler():
  """Set the default handler: a background process would ignore interrupts."""
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)


class TestRemembered:

  def test_raises_at_once(self):
    with pytest.raises(KeyboardInterrupt), interruption.remembered():
      signal.raise_signal(signal.SIGINT)

  def test_raises_again_at_a_check(self):
    with interruption.remembered():
      interruption.check()
      interrupt_where_it_is_dropped()
      with pytest.raises(KeyboardInterrupt):
        interruption.check()
    with interruption.remembered():
      interruption.check()

  def test_ignored_interrupts_stay_ignored(self):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruption.remembered():
      signal.raise_signal(signal.SIGINT)
      interruption.check()

  def test_in_a_thread(self):
    """Only the main thread may set a handler."""

    def run():
      with interruption.remembered():
        interruption.check()

    with futures.ThreadPoolExecutor(1) as executor:
      executor.submit(run).result()


def test_a_command_ends(monkeypatch, capsys):
  """The command ends even if no job has checked for the interrupt."""
  done = []

  def job():
    interrupt_where_it_is_dropped()
    done.append('first')

  monkeypatch.setattr(flags, 'parse', lambda _: [job, done.append])
  monkeypatch.setattr(macro_names, 'check', lambda _: None)
  monkeypatch.setattr(gin_job, 'configure', lambda command: command)
  assert main.main(['paper']) == 130
  assert done == ['first']
  assert capsys.readouterr().err.startswith('Interrupted.')
