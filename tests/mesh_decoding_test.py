# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of `mesh` on eight simulated devices.

The number of devices is settled when JAX starts, hence a process of its own:
one for all, since starting and compiling is what they cost.
"""

import os
import pathlib
import subprocess
import sys

import pytest

_CHECKOUT = pathlib.Path(__file__).parents[1]
_NAMES = ('placement', 'decoding', 'walltime', 'jobs')
_FILES = [f'tests/mesh/{name}.py' for name in _NAMES]
_ENVIRONMENT = {
    'JAX_PLATFORMS': 'cpu',
    'JAX_DISABLE_MOST_OPTIMIZATIONS': '1',  # compiling is most of the time
    # Devices that wait for each other hold threads of one pool. With as many
    # threads as devices, and work to be shared out, none could go on.
    'NPROC': '32',
    'JAX_CPU_ENABLE_ASYNC_DISPATCH': '0',
}
_MAX_SECONDS = 1500  # a collective that hangs is not to hang the tests
_EIGHT_DEVICES = '--xla_force_host_platform_device_count=8'


def _run(*arguments):
  flags = f'{os.environ.get("XLA_FLAGS", "")} {_EIGHT_DEVICES}'
  done = subprocess.run(
      [sys.executable, '-m', 'pytest', *_FILES, '-q', *arguments],
      cwd=_CHECKOUT,
      env={**os.environ, **_ENVIRONMENT, 'XLA_FLAGS': flags},
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      timeout=_MAX_SECONDS,
  )
  assert done.returncode == 0, done.stdout
  assert ' passed' in done.stdout


def test_on_eight_devices():
  _run()


@pytest.mark.exhaustive
def test_trained_models_on_every_mesh():
  _run('-m', 'exhaustive')
