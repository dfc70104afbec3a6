# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the whole process of a command."""

import glob
import os
import sys

import jax
from jax.extend import backend
import pytest

from speculative_t5x.jobs.command_line import process
from tests import processes

# Of the process, what importing and using the library must leave as it is.
_STATE = """
import logging, os, sys
from jax._src import xla_bridge

def state():
  from tensorflow.python.eager import context
  from tensorflow.python.framework import config
  import tensorflow as tf
  loggers = [logging.getLogger(x) for x in ('', 'absl', 'asyncio', 'jax')]
  return {
      'hooks': (sys.unraisablehook, sys.excepthook),
      'filters': [list(x.filters) for x in loggers],
      'platforms': dict(xla_bridge._backend_factories),
      'determinism': config.is_op_determinism_enabled(),
      'seed': context.global_seed(),
      'level': [x.level for x in loggers],
      'paths': dict(register._URI_PREFIXES_TO_CLS),
  }

from etils.epath import register
import seqio
before = state()
import speculative_t5x as st
from speculative_t5x.tasks import examples, ende
decoder = st.embedded.load_decoder(gamma=2)
lengths = {'inputs': 8, 'targets': 8}
examples.load('bulletins_ende', 'validation', lengths, 2)
after = state()
changed = [name for name in before if before[name] != after[name]]
assert not changed, changed
"""


def test_the_library_changes_nothing(tmp_path):
  done = processes.outside([sys.executable, '-c', _STATE], tmp_path)
  assert done.returncode == 0, done.stderr


# Redirections that close standard streams.
_CLOSED = '<&-', '<&- >&- 2>&-'


@pytest.mark.parametrize('closed', _CLOSED)
def test_closed_streams(tmp_path, closed):
  """A program opens them, and files do not take their places."""
  code = (
      'import os, sys; from speculative_t5x.jobs.command_line import process;'
      'process.open_streams(); file = open("file", "w");'
      'print("out", flush=True); print("error", file=sys.stderr, flush=True);'
      'os.system("echo shell; echo of the shell >&2");'
      'sys.exit(sys.stdin.read() + str(file.fileno()))'
  )
  command = f"{sys.executable} -c '{code}' {closed}"
  done = processes.outside(['bash', '-c', command], tmp_path)
  assert (done.stdout == '') == ('>&-' in closed.split())
  assert (done.stderr == '') == ('2>&-' in closed)
  assert 'error' not in done.stdout and 'of the shell' not in done.stdout
  assert (tmp_path / 'file').read_text() == ''


@pytest.mark.parametrize(
    ('variable', 'devices', 'platforms', 'is_hidden'),
    [
        (None, None, None, True),
        # JAX and libtpu set these on import.
        ('TPU_SKIP_MDS_QUERY', None, None, True),
        ('TPU_LIBRARY_PATH', None, None, True),
        ('TPU_NAME', None, None, False),
        ('JAX_FORCE_TPU_INIT', None, None, False),
        (None, '/dev/accel*', None, False),
        (None, '/dev/vfio/[0-9]*', None, False),
        (None, None, 'tpu,cpu', False),
    ],
)
def test_libtpu_does_not_search_on_a_machine_without_a_tpu(
    monkeypatch, variable, devices, platforms, is_hidden
):
  found = {}
  for name in list(os.environ):
    if name.startswith('TPU_') or name == 'JAX_FORCE_TPU_INIT':
      monkeypatch.delenv(name)
  if variable is not None:
    monkeypatch.setenv(variable, '1')
  monkeypatch.setattr(glob, 'glob', lambda x: ['0'] if x == devices else [])
  monkeypatch.setattr(backend, 'register_backend_factory', found.__setitem__)
  jax.config.update('jax_platforms', platforms)
  process.keep_libtpu_from_searching()
  assert (found.keys() == {'tpu'}) == is_hidden
  if is_hidden:
    with pytest.raises(RuntimeError, match='no TPU on this machine'):
      found['tpu']()
