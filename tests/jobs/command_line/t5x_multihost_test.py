# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of opening a TPU, and of T5X's scripts on several hosts.

`t5x_guest.jobs_test` runs the jobs.
"""

import os
import subprocess
import sys
import threading

import jax
import pytest

from speculative_t5x.jobs.command_line import process
from speculative_t5x.jobs.command_line import t5x_multihost

_ADDRESS = '--coordinator_address=10.0.0.2:1234'


@pytest.fixture
def calls(monkeypatch):
  """Record the connection and the script instead of making them."""
  made = []
  monkeypatch.setattr(os, 'environ', dict(os.environ))
  monkeypatch.setattr(
      jax.distributed, 'initialize', lambda *args: made.append(args)
  )
  monkeypatch.setattr(
      t5x_multihost, 'run_script', lambda *args: made.append(args) or 3
  )
  return made


@pytest.mark.parametrize(
    ('flags', 'connection'),
    [
        ([], (None, None, None)),
        (
            ['--process_index=0', '--process_count=1', _ADDRESS],
            ('10.0.0.2:1234', 1, 0),
        ),
    ],
)
def test_connects_before_the_script_runs(calls, flags, connection):
  """The script gets the flags that are not the launcher's."""
  own = ['--gin_file=a.gin', '--gin.SPLIT="test"', '--process=abbreviated']
  assert t5x_multihost.main(['train', *flags, *own]) == 3
  assert calls == [connection, ('train', own)]


_COUNT, _INDEX = '--process_count=2', '--process_index=0'


def test_hosts_that_jax_refuses():
  """In a process of its own, because JAX counts hosts before devices."""
  module = 'speculative_t5x.jobs.command_line.t5x_multihost'
  flags = 'eval', _ADDRESS, _COUNT, '--process_index=2'
  done = subprocess.run(
      [sys.executable, '-m', module, *flags], capture_output=True, text=True
  )
  assert done.returncode == 2
  assert 'cannot connect hosts (process_id and num_pro' in done.stderr
  assert 'or run python -m t5x.eval on a single host.' in done.stderr


_FIRST = [_ADDRESS, _COUNT, _INDEX]


def test_port_in_use(calls, monkeypatch):
  def initialize(*_):
    raise RuntimeError('Failed to start RPC server')

  monkeypatch.setattr(jax.distributed, 'initialize', initialize)
  status = t5x_multihost.main(['eval', *_FIRST])  # text is printed, status 1
  assert status.startswith('error: ') and not calls
  assert '10.0.0.2:1234' in status and 'port is free' in status
  timers = [t for t in threading.enumerate() if isinstance(t, threading.Timer)]
  assert all(timer.finished.is_set() for timer in timers)


@pytest.fixture
def ended(monkeypatch):
  """Set an event where a process would end because it waited too long."""
  ended = threading.Event()
  monkeypatch.setattr(process, '_WAIT_S', 0)
  monkeypatch.setattr(os, '_exit', lambda status: status == 1 and ended.set())
  return ended


def test_host_that_waits_for_others_ends(calls, ended, monkeypatch, capsys):
  """JAX itself would abort the process after five minutes."""
  monkeypatch.setattr(jax.distributed, 'initialize', lambda *_: ended.wait(60))
  t5x_multihost.main(['eval', *_FIRST])
  assert ended.is_set()
  error = capsys.readouterr().err
  assert error.count('\n') == 1 and '10.0.0.2:1234' in error


def test_port_that_google_opens(calls, monkeypatch):
  """JAX's own choice on Cloud TPUs is closed there."""
  monkeypatch.delenv('JAX_COORDINATOR_PORT', raising=False)
  ports = []
  monkeypatch.setattr(
      jax.distributed, 'initialize',
      lambda *_: ports.append(os.environ['JAX_COORDINATOR_PORT']),
  )  # fmt: skip
  t5x_multihost.main(['eval'])
  monkeypatch.setenv('JAX_COORDINATOR_PORT', '99')
  t5x_multihost.main(['eval'])
  assert ports == ['8476', '99']


def test_host_without_a_tpu(calls, monkeypatch):

  def open_devices():
    raise RuntimeError('There is no TPU.')

  monkeypatch.setattr(process, 'open_devices', open_devices)
  status = t5x_multihost.main(['eval', *_FIRST])
  assert status == 'error: There is no TPU.'
  assert calls == [('10.0.0.2:1234', 2, 0)]  # the script does not run


@pytest.fixture
def platforms(monkeypatch):
  """Set JAX_PLATFORMS on a machine that has no TPU."""

  def devices():
    raise AssertionError  # as JAX does without the plugin of a platform

  monkeypatch.setattr(jax, 'devices', devices)
  return lambda value: jax.config.update('jax_platforms', value)


@pytest.mark.parametrize('value', [None, '', 'cpu'])
def test_no_tpu_is_asked_for(platforms, value):
  platforms(value)
  process.open_devices()


def test_tpu_that_waits_for_other_hosts(platforms, ended, monkeypatch, capsys):
  monkeypatch.setattr(jax, 'devices', lambda: ended.wait(60))
  platforms('tpu')
  process.open_devices()
  assert ended.is_set()
  (line,) = capsys.readouterr().err.splitlines()
  assert 'several hosts' in line
