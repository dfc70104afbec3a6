# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints the versions of T5X and of other packages that the tests use."""

import importlib.metadata
import pathlib
import platform
import subprocess

import t5x

_PACKAGES = ('jax', 'jaxlib', 'flax', 'orbax-checkpoint', 'seqio', 'tensorflow')


def commit() -> str:
  """Return the commit of T5X's checkout, or that there is none."""
  folder = pathlib.Path(t5x.__path__[0])
  done = subprocess.run(
      ['git', '-C', str(folder), 'rev-parse', 'HEAD'],
      capture_output=True,
      text=True,
  )
  return done.stdout.strip() or 'not a git checkout'


if __name__ == '__main__':
  print('T5X', commit())
  print('Python', platform.python_version(), *[
      f'{name} {importlib.metadata.version(name)}' for name in _PACKAGES
  ])  # fmt: skip
