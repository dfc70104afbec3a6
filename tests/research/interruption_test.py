# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that an interrupt that is dropped somewhere still ends a command."""

from concurrent import futures
import contextlib
import signal

import pytest

from speculative_t5x.jobs.command_line import flags
from speculative_t5x.jobs.command_line import gin_job
from speculative_t5x.jobs.command_line import macro_names
from speculative_t5x.jobs.command_line import main
from speculative_t5x.research import interruption


def interrupt_where_it_is_dropped():
  with contextlib.suppress(KeyboardInterrupt):
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def default_handler():
  """Sets the default handler: a background process would ignore interrupts."""
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
