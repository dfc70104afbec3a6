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

from tests import simulated_devices

_CHECKOUT = pathlib.Path(__file__).parents[1]
_NAMES = ('placement', 'decoding', 'walltime', 'jobs')
_FILES = [f'tests/mesh/{name}.py' for name in _NAMES]
_MAX_SECONDS = 1500  # a collective that hangs is not to hang the tests


def _run(*arguments):
  devices = simulated_devices.environment(8, os.environ.get('XLA_FLAGS', ''))
  done = subprocess.run(
      [sys.executable, '-m', 'pytest', *_FILES, '-q', *arguments],
      cwd=_CHECKOUT,
      env={**os.environ, **devices},
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
