# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a Python or JAX out of the range is refused, with a remedy."""

import pathlib
import subprocess
import sys
import tomllib

import pytest

from speculative_t5x import version

_CHECKOUT = pathlib.Path(__file__).parents[1]

def _run(code):
  """Run Python with a JAX that calls itself as old as Colab's."""
  old = "import jax; jax.__version__, jax.__version_info__ = '0.7.2', (0, 7, 2)"
  return subprocess.run(
      [sys.executable, '-c', f'{old}\n{code}'],
      cwd=_CHECKOUT,
      capture_output=True,
      text=True,
  )


@pytest.mark.parametrize('module', ['networks.sharding', 'jobs.infer'])
def test_old_jax_is_refused_at_the_import_of(module):
  done = _run(f'import speculative_t5x, speculative_t5x.{module}')
  assert done.returncode == 1
  last = done.stderr.splitlines()[-1]
  assert last.startswith('speculative_t5x.version.UnsupportedError: ')
  assert '0.7.2' in last and 'pip install' in last


def test_old_jax_is_one_line_on_the_command_line():
  arguments = ['eval', '--gin_file=configs/runs/demo.gin']
  done = _run(
      'from speculative_t5x.jobs.command_line import main\n'
      f'raise SystemExit(main.main({arguments}))'
  )
  assert done.returncode == 1 and not done.stdout
  (line,) = done.stderr.splitlines()
  assert '0.7.2' in line and 'pip install' in line


@pytest.mark.parametrize('number', [(3, 10), (3, 14)])
def test_refuses_a_python_out_of_the_range(number, monkeypatch):
  version.check()
  monkeypatch.setattr(sys, 'version_info', (*number, 0))
  with pytest.raises(version.UnsupportedError, match='3.11 to 3.13'):
    version.check()


def test_the_range_is_that_of_the_package():
  project = tomllib.loads((_CHECKOUT / 'pyproject.toml').read_text())['project']
  assert project['requires-python'] == '>=3.11,<3.14'
  assert 'jax>=0.10' in project['dependencies']
