# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/cloud_tpu and of the commands on its page.

No TPU, account or network is needed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

_CHECKOUT = pathlib.Path(__file__).parents[2]
_RECORDER = '#!/bin/sh\necho "${0##*/} $*" >>"${LOG}"\n'
# Makes the virtual environment; its Python is that of the tests.
_PYTHON3 = f"""#!/bin/sh
echo "python3 $*" >>"${{LOG}}"
[ "$3" = venv ] || exit 0
mkdir -p .venv/bin .venv/lib/python3.13/site-packages
ln -s {sys.executable} .venv/bin/python
touch .venv/bin/activate
"""


class Machine:
  """A folder with a checkout, and programs that record their calls."""

  def __init__(self, folder: pathlib.Path):
    self.folder, self.log = folder, folder / 'log'
    self.checkout = folder / 'speculative_t5x'
    shutil.copytree(
        _CHECKOUT / 'scripts/cloud_tpu', self.checkout / 'scripts/cloud_tpu'
    )
    shutil.copy(_CHECKOUT / 'requirements.txt', self.checkout)
    self.log.touch()
    (folder / 'bin').mkdir()
    programs = 'git', 'speculative-t5x', 'python', 'pip'
    for name, text in {
        **dict.fromkeys(programs, _RECORDER),
        'python3': _PYTHON3,
    }.items():
      (folder / 'bin' / name).write_text(text)
      (folder / 'bin' / name).chmod(0o755)

  def run(self, text: str) -> str:
    """Run commands, and return the calls that were recorded."""
    done = subprocess.run(
        ['bash', '-euo', 'pipefail', '-c', text],
        env={
            **os.environ,
            'PATH': f'{self.folder}/bin:{os.environ["PATH"]}',
            'LOG': str(self.log),
        },
        cwd=self.folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return self.log.read_text()


@pytest.fixture
def machine(tmp_path):
  return Machine(tmp_path)


def test_set_up(machine):
  log = machine.run('bash speculative_t5x/scripts/cloud_tpu/set_up.sh')
  assert re.search(r'python3 -m pip install --quiet uv==[\d.]+\n', log)
  assert '-r requirements-tpu.txt -r requirements-t5x.txt' in log
  venv = machine.checkout / '.venv'
  installed = (venv / 'lib/python3.13/site-packages/t5x.pth').read_text()
  names = ['t5x', 'airio', 'jestimator']
  assert installed.splitlines() == [str(venv / name) for name in names]


def _page_blocks():
  page = (_CHECKOUT / 'docs/tpu_and_gpu.md').read_text()
  return re.findall('```sh\n(.*?)```', page, re.DOTALL)


@pytest.mark.parametrize('block', _page_blocks())
def test_commands_of_the_page(machine, block):
  """They run as printed, each with what its placeholders stand for."""
  text = re.sub('<([a-z ]+)>', lambda match: match[1].replace(' ', '-'), block)
  log = machine.run(text)
  jobs = r'^(speculative-t5x|python -m) ([\w.]+)'
  for program, job in re.findall(jobs, text, re.M):
    assert f'{program} {job}' in log


def test_same_t5x_as_documented():
  set_up = (_CHECKOUT / 'scripts/cloud_tpu/set_up.sh').read_text()
  documented = (_CHECKOUT / 'docs/t5x.md').read_text()
  repositories = re.findall(r'(\S+/\S+) ([0-9a-f]{40})', set_up)
  assert len(repositories) == 3
  for name, commit in repositories:
    assert f'| `{name}` | commit `{commit}` |' in documented


def test_shellcheck():
  """All shell scripts of the project are checked."""
  scripts = [*_CHECKOUT.glob('scripts/**/*.sh'), _CHECKOUT / '.ci/run']
  program = pathlib.Path(sys.executable).parent / 'shellcheck'
  done = subprocess.run([program, *scripts], capture_output=True, text=True)
  assert done.returncode == 0, done.stdout
