# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of T5X's scripts on several hosts.

`t5x_guest.jobs_test` runs the jobs.
"""

import os

import jax
import pytest

from speculative_t5x.jobs.command_line import t5x_multihost

_ADDRESS = '--coordinator_address=10.0.0.2:1234'


@pytest.fixture
def calls(monkeypatch):
  """Record the connection and the script instead of making them."""
  made = []
  monkeypatch.setattr(os, 'environ', dict(os.environ))
  monkeypatch.setattr(
      jax.distributed, 'initialize', lambda *args, **_: made.append(args)
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


def test_hosts_that_jax_refuses(calls, monkeypatch):
  def initialize(*_, **unused):
    raise RuntimeError('Failed to start RPC server')

  monkeypatch.setattr(jax.distributed, 'initialize', initialize)
  status = t5x_multihost.main(['eval', _ADDRESS])  # text is printed, status 1
  assert status.startswith('error: ') and not calls
  assert 'Failed to start RPC server' in status


def test_port_that_google_opens(calls, monkeypatch):
  """JAX's own choice on Cloud TPUs is closed there."""
  monkeypatch.delenv('JAX_COORDINATOR_PORT', raising=False)
  ports = []
  monkeypatch.setattr(
      jax.distributed, 'initialize',
      lambda *_, **unused: ports.append(os.environ['JAX_COORDINATOR_PORT']),
  )  # fmt: skip
  t5x_multihost.main(['eval'])
  monkeypatch.setenv('JAX_COORDINATOR_PORT', '99')
  t5x_multihost.main(['eval'])
  assert ports == ['8476', '99']
