# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs tests in processes of their own, because JAX reads variables once.

JAX determines the number of devices when it starts, too.
"""

from collections.abc import Mapping, Sequence
import os
import pathlib
import subprocess
import sys

_CHECKOUT = pathlib.Path(__file__).parents[1]
_MAX_SECONDS = 1500  # a collective that hangs must not hang the tests


def run(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
  """Run pytest with arguments and variables; fail if a test fails."""
  done = subprocess.run(
      [sys.executable, '-m', 'pytest', '-q', *arguments],
      cwd=_CHECKOUT,
      env={**os.environ, **variables},
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      timeout=_MAX_SECONDS,
  )
  assert done.returncode == 0, done.stdout
  assert ' passed' in done.stdout


def outside(
    command: Sequence[str], folder: pathlib.Path, stdin: str = '', **variables
) -> subprocess.CompletedProcess:
  """Run a program in another folder than the checkout, which it finds."""
  paths = [str(_CHECKOUT), os.environ.get('PYTHONPATH', '')]
  path = os.pathsep.join(filter(None, paths))
  return subprocess.run(
      command,
      cwd=folder,
      env={**os.environ, 'PYTHONPATH': path, **variables},
      input=stdin,
      capture_output=True,
      text=True,
  )


def environment(count: int, xla_flags: str = '') -> dict[str, str]:
  """Return variables for a number of devices, besides other flags of XLA."""
  return {
      'JAX_PLATFORMS': 'cpu',
      'XLA_FLAGS': (
          f'{xla_flags} --xla_force_host_platform_device_count={count}'
      ),
      # Devices that wait for each other hold threads of one pool. With as many
      # threads as devices, and work to be shared out, none could go on.
      'NPROC': '32',
  }
