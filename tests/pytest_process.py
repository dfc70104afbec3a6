# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs tests in a separate process, because JAX reads variables once."""

from collections.abc import Mapping, Sequence
import os
import pathlib
import subprocess
import sys

_CHECKOUT = pathlib.Path(__file__).parents[1]
_MAX_SECONDS = 1500  # a collective that hangs must not hang the tests


def run(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
  """Runs pytest with arguments and variables; fails if a test fails."""
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
