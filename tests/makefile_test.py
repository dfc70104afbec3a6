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


class Workplace:
  """Runs `make setup` with Pythons that install nothing."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self.environment = folder / 'environment'
    self._log = folder / 'log'

  def setup(self, version: str | None = None) -> subprocess.CompletedProcess:
    """Runs `make setup`, naming a Python of this version if one is given."""
    chosen = [] if version is None else [f'PYTHON={self._python(version)}']
    self._log.write_text('')
    return subprocess.run(
        ['make', 'setup', f'VENV={self.environment}', *chosen],
        cwd=_CHECKOUT,
        env={k: v for k, v in os.environ.items() if k not in _INHERITED},
        capture_output=True,
        text=True,
    )

  def installations(self) -> list[str]:
    """Returns what the last `setup` installed, with the Python's version."""
    return self._log.read_text().splitlines()

  def _python(self, version: str) -> pathlib.Path:
    major, minor = version.split('.')
    path = self._folder / f'python{version}'
    names = dict(python=sys.executable, fake=path, log=self._log)
    path.write_text(_FAKE_PYTHON.format(major=major, minor=minor, **names))
    path.chmod(0o755)
    return path


@pytest.fixture
def workplace(tmp_path):
  return Workplace(tmp_path)


def test_installs_the_lock_of_the_python(workplace):
  """Again for another Python, in an environment that is made anew."""
  for version, lock in (('3.11', ''), ('3.12', '-py312')):
    done = workplace.setup(version)
    assert done.returncode == 0, done.stderr
    first, second = workplace.installations()
    assert first.startswith(f'{version} -m pip install')
    assert first.endswith(f' -r requirements{lock}.txt')
    assert '--no-deps' in second and ' -r ' not in second
    old = workplace.environment / 'old'
    assert not old.exists()
    old.touch()
  assert 'which is not of Python 3.12' in done.stdout
  # It is kept where no Python is named.
  assert workplace.setup().returncode == 0
  assert not workplace.installations()


def test_deletes_nothing_in_a_folder_that_is_no_environment(workplace):
  workplace.environment.mkdir()
  other = workplace.environment / 'other'
  other.touch()
  assert workplace.setup('3.12').returncode == 0
  assert other.exists()


def test_refuses_an_untested_python(workplace):
  workplace.setup('3.11')
  done = workplace.setup('3.13')
  assert done.returncode
  message, makes_own = done.stderr.splitlines()
  assert "python3.13' is not" in message and 'make PYTHON=' in message
  assert makes_own.startswith('make: ***')
  assert not workplace.installations()
