# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how `make` chooses Python, environment and lock."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_CHECKOUT = pathlib.Path(__file__).parents[1]
# `make test` passes its own variables on to every `make` below it.
_INHERITED = ('MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'PYTHON', 'VENV')
# Evaluates code as a Python of another version, makes environments that hold
# itself, and records all other modules that it runs.
_FAKE_PYTHON = """#!/bin/bash
case "$1" in
  -c) exec '{python}' -c '
import sys
sys.modules["pip"] = sys
sys.version_info = ({major}, {minor}, 0, "final", 0)
exec(sys.argv[1])' "$2" ;;
  --version) echo 'Python {major}.{minor}.0' ;;
esac
if [ "$2" = venv ]; then
  folder="${{@: -1}}"
  if [ "$3" = --clear ]; then rm -r "$folder"; fi
  mkdir -p "$folder/bin"
  cp '{fake}' "$folder/bin/python"
  touch "$folder/pyvenv.cfg"
elif [ "$1" = -m ]; then
  echo "{major}.{minor} $*" >>'{log}'
fi
"""

pytestmark = pytest.mark.skipif(not shutil.which('make'), reason='needs make')


def _add_python(folder, version):
  """Write a fake Python of a version into a folder, and return its path."""
  path = folder / f'python{version}'
  major, minor = version.split('.')
  names = dict(python=sys.executable, fake=path, log=folder / 'log')
  path.write_text(_FAKE_PYTHON.format(major=major, minor=minor, **names))
  path.chmod(0o755)
  return path


def _setup(folder, version=None, goal='setup'):
  """Run `make` with a Python of a version, which installs nothing.

  Without a version, make chooses among the Pythons of the folder.

  Returns the process, and what was installed, with the Python's version.
  """
  log = folder / 'log'
  log.write_text('')
  chosen = [] if version is None else [f'PYTHON={_add_python(folder, version)}']
  done = subprocess.run(
      ['make', goal, f'VENV={folder / "environment"}', *chosen],
      cwd=_CHECKOUT,
      env={k: v for k, v in os.environ.items() if k not in _INHERITED}
      | {'PATH': f'{folder}:{os.environ["PATH"]}'},
      capture_output=True,
      text=True,
  )
  return done, log.read_text().splitlines()


@pytest.mark.parametrize('works', [True, False])
def test_takes_the_newest_python_that_works(works, tmp_path):
  for version in ('3.11', '3.12', '3.13', '3.14'):
    path = _add_python(tmp_path, version)
    if version == '3.13' and not works:
      path.write_text('#!/bin/sh\nexit 127\n')  # as pyenv's do
  done, installations = _setup(tmp_path)
  assert done.returncode == 0, done.stderr
  assert installations[0].startswith('3.13 ' if works else '3.12 ')


def test_installs_the_lock_of_the_python(tmp_path):
  """Again for another Python, in an environment that is made anew."""
  for version, lock in (('3.11', '-py311'), ('3.12', '-py312'), ('3.13', '')):
    done, (first, second) = _setup(tmp_path, version)
    assert done.returncode == 0, done.stderr
    assert first.startswith(f'{version} -m pip install')
    assert first.endswith(f' -r requirements{lock}.txt')
    assert '--no-deps' in second and ' -r ' not in second
    old = tmp_path / 'environment/old'
    assert not old.exists()
    old.touch()
  assert 'which is not of Python 3.13' in done.stdout
  # It is kept where no Python is named.
  done, installations = _setup(tmp_path)
  assert done.returncode == 0 and not installations


def test_libtpu_is_found_by_the_tests_alone(tmp_path):
  """Notebooks, which use the same environment, would print its errors."""
  done, installations = _setup(tmp_path, '3.13', 'test')
  assert done.returncode == 0, done.stderr
  (line,) = (x for x in installations if ' libtpu==' in x)
  assert f' --target {tmp_path / "environment/libtpu"} ' in line
  assert not any('-r requirements-tpu' in x for x in installations)
  assert ' -m pytest ' in installations[-1]


def test_deletes_nothing_in_a_folder_that_is_not_an_environment(tmp_path):
  other = tmp_path / 'environment/other'
  other.parent.mkdir()
  other.touch()
  assert _setup(tmp_path, '3.12')[0].returncode == 0
  assert other.exists()


def test_refuses_an_untested_python(tmp_path):
  _setup(tmp_path, '3.11')
  done, installations = _setup(tmp_path, '3.14')
  assert done.returncode and not installations
  message, makes_own = done.stderr.splitlines()
  assert "python3.14' is not" in message and 'make PYTHON=' in message
  assert makes_own.startswith('make: ***')
