# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the scripts that scripts/cloud_tpu runs on the machine."""

import pathlib
import re
import shutil
import subprocess
import sys
import time

from etils import epath
import jax
import jax.numpy as jnp
import pytest

from scripts.cloud_tpu import worker_main
from speculative_t5x.decoder import compilation_cache
from tests.scripts import fake_cloud

_SCRIPTS = fake_cloud.CHECKOUT / 'scripts/cloud_tpu'

# A machine whose home is a local folder, without a cloud.
_ON_WORKER = r"""#!/usr/bin/env bash
set -euo pipefail
case "$4 ${5-}" in
  'scp --recurse')
    cd "${HOME}/worker"
    cp -r output/* run/log.txt "$8"
    ;;
  scp*) cp "$5" "${HOME}/worker/source.bundle" ;;
  ssh*)
    cd "${HOME}/worker"
    export HOME="${PWD}"
    command="${!#}"
    bash -c "${command#--command=}"
    ;;
esac
"""


@pytest.fixture
def worker(cloud):
  """Returns a machine with a separate home, and substitutes for the cloud."""
  home = cloud.folder / 'worker'
  fake_cloud.write_program(cloud.folder / 'on_worker', _ON_WORKER)
  guard = home / 'guard'
  guard.mkdir(parents=True)
  (guard / 'delete_at').write_text(f'{int(time.time()) + 3600}\n')
  note = '#!/bin/sh\necho "$(basename "$0") $*" >>"${LOG}"\n'
  for name in ('sudo', 'systemd-run'):
    fake_cloud.write_program(cloud.bin / name, note)
  fake_cloud.write_program(cloud.bin / 'systemctl', '#!/bin/sh\nexit 3\n')
  # The environment of uv is that of the tests.
  python = home / 'venv/bin/python'
  run = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
  fake_cloud.write_program(cloud.bin / 'python3', f'{note}')
  fake_cloud.write_program(python, run)
  return home


def _on_worker(cloud: fake_cloud.Cloud, worker: pathlib.Path) -> dict[str, str]:
  return dict(
      ON_WORKER=str(cloud.folder / 'on_worker'),
      GUARD_FOLDER=str(worker / 'guard'),
      JAX_PLATFORMS='cpu',
  )


class TestWorker:

  def test_whole_job(self, cloud, worker):
    """It runs from the commit to the output, on this machine."""
    done = cloud.launch(
        *fake_cloud.RUN, '--output-dir=out', '--', 'paper', 'table1',
        **_on_worker(cloud, worker),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (cloud.folder / 'out').iterdir()) == [
        'log.txt', 'table1.md'
    ]  # fmt: skip
    assert 'Written: ' in done.stdout
    log = cloud.log.read_text()
    assert 'sudo bash scripts/cloud_tpu/worker_guard.sh' in log
    assert re.search(r'python3 -m pip install .*--user uv==[\d.]+\n', log)
    assert 'python3 -m uv venv --quiet --clear --python 3.11' in log
    assert '-r requirements-tpu.txt' in log
    assert 'requirements-t5x.txt' not in log

  def test_failing_job(self, cloud, worker):
    """The status and the messages are the job's."""
    done = cloud.launch(
        *fake_cloud.RUN, '--output-dir=out', '--', 'paper', 'table9',
        **_on_worker(cloud, worker),
    )  # fmt: skip
    assert done.returncode == 2
    assert "error: there is no 'table9'." in done.stdout + done.stderr
    assert cloud.verbs()[-1] == 'tpu-vm delete'

  def _run(self, cloud, worker, *arguments, **settings):
    checkout = worker / 'speculative_t5x'
    if not checkout.exists():
      shutil.copytree(cloud.checkout, checkout, symlinks=True)
    job = dict(CHIPS='all', NUM_HOSTS='1', TRACE='no', OUTPUT_DIR='output')
    environment = cloud.environment(**_on_worker(cloud, worker))
    return subprocess.run(
        ['bash', 'scripts/cloud_tpu/worker_run.sh', *arguments],
        cwd=worker / 'speculative_t5x',
        env={**environment, **job, 'HOME': str(worker), **settings},
        capture_output=True,
        text=True,
        timeout=fake_cloud.SECONDS,
    )

  def _show_environment(self, worker):
    fake_cloud.write_program(
        worker / 'venv/bin/python', '#!/bin/sh\necho "$@"\nenv | sort\n'
    )

  def test_one_chip(self, cloud, worker):
    self._show_environment(worker)
    shown = self._run(cloud, worker, 'speculative-t5x', 'x', CHIPS='1').stdout
    assert {
        'TPU_VISIBLE_CHIPS=0', 'TPU_CHIPS_PER_PROCESS_BOUNDS=1,1,1',
        'TPU_PROCESS_BOUNDS=1,1,1',
    } <= set(shown.splitlines())  # fmt: skip

  def test_all_chips_of_the_host(self, cloud, worker):
    self._show_environment(worker)
    shown = self._run(
        cloud, worker, 't5x.eval', 'a b', JAX_PLATFORMS='', TRACE='yes',
        NUM_HOSTS='4', OUTPUT_DIR='gs://b/x',
    ).stdout  # fmt: skip
    assert 'JAX_PLATFORMS=tpu,cpu' in shown and 'TPU_VISIBLE' not in shown
    assert shown.startswith(
        '-m scripts.cloud_tpu.worker_main --num_hosts=4 --output_dir=gs://b/x'
        ' --trace t5x.eval a b\n'
    )

  def test_lost_connection(self, cloud, worker):
    """gcloud connects again, and the job is not started again."""
    self._show_environment(worker)
    first = self._run(cloud, worker, 'speculative-t5x', 'x')
    again = self._run(cloud, worker, 'speculative-t5x', 'other')
    assert again.stdout == first.stdout and ' x\n' in first.stdout
    assert (first.returncode, again.returncode) == (0, 0)

  def test_interrupted_at_the_time_limit(self, cloud, worker):
    """The job gets an interrupt, so that finished work remains."""
    fake_cloud.write_program(
        worker / 'venv/bin/python',
        f'#!{sys.executable}\nimport signal\ntry:\n  signal.pause()\n'
        'except KeyboardInterrupt:\n  print("interrupted")\n',
    )
    deadline = (
        int(time.time()) + 300 + 2
    )  # including the time to collect the output
    (worker / 'guard/delete_at').write_text(f'{deadline}\n')
    done = self._run(cloud, worker, 'speculative-t5x', 'x')
    assert done.returncode == 124
    no_time = 'error: no time is left for the job.\n'
    assert done.stdout in ('interrupted\n', no_time)

  def test_no_time_left(self, cloud, worker):
    (worker / 'guard/delete_at').write_text(f'{int(time.time()) + 300}\n')
    done = self._run(cloud, worker, 'speculative-t5x', 'x')
    assert done.returncode == 124
    assert done.stdout == 'error: no time is left for the job.\n'

  def test_same_t5x_as_documented(self):
    setup = (_SCRIPTS / 'worker_setup.sh').read_text()
    documented = (fake_cloud.CHECKOUT / 'docs/t5x.md').read_text()
    repositories = re.findall(r"'(\S+/\S+) ([0-9a-f]{40})'", setup)
    assert len(repositories) == 3
    for name, commit in repositories:
      assert f'| `{name}` | commit `{commit}` |' in documented


class TestGuard:

  def _run(self, cloud, worker, now_active=False):
    """Runs it; returns what it asks systemd for."""
    answers = (
        '#!/bin/sh\nfor url; do :; done\ncase "${url}" in\n'
        '*/time-limit-s) echo 7200 ;;\n'
        '*/delete-command) echo delete it --now ;;\nesac\n'
    )
    fake_cloud.write_program(cloud.bin / 'curl', answers)
    says = f'#!/bin/sh\nexit {0 if now_active else 3}\n'
    fake_cloud.write_program(cloud.bin / 'systemctl', says)
    subprocess.run(
        ['bash', str(_SCRIPTS / 'worker_guard.sh')],
        env=cloud.environment(GUARD_FOLDER=str(worker / 'guard')),
        check=True,
        timeout=fake_cloud.SECONDS,
    )
    lines = cloud.log.read_text().splitlines()
    return [line for line in lines if line.startswith('systemd-run')]

  def test_deletes_at_the_limit(self, cloud, worker):
    (worker / 'guard/delete_at').unlink()
    before = int(time.time())
    (line,) = self._run(cloud, worker)
    after = int(time.time())
    assert '--on-active=7200s' in line
    assert line.endswith('bash -c until delete it --now; do sleep 60; done')
    deadline = int((worker / 'guard/delete_at').read_text())
    assert before + 7200 <= deadline <= after + 7200

  def test_restart_gives_no_more_time(self, cloud, worker):
    (worker / 'guard/delete_at').write_text('1\n')  # long ago
    (line,) = self._run(cloud, worker)
    assert '--on-active=1s' in line

  def test_second_time(self, cloud, worker):
    assert self._run(cloud, worker, now_active=True) == []


class TestWorkerMain:

  def test_trace(self, tmp_path):
    """A trace is written also if the job fails."""
    folder = epath.Path(tmp_path) / 'output' / 'trace'
    with pytest.raises(ValueError, match='in the job'):
      with worker_main.traced(folder):
        jax.block_until_ready(jnp.arange(8) * 2)
        raise ValueError('in the job')
    (trace,) = folder.glob('plugins/profile/*/*.xplane.pb')
    assert trace.stat().length > 0

  @pytest.fixture
  def hosts_met(self, monkeypatch):
    calls = []
    monkeypatch.setattr(
        jax.distributed, 'initialize', lambda: calls.append('met')
    )
    return calls

  @pytest.fixture
  def without_t5x(self):
    """Removes T5X from the imported modules within the test."""
    imported = lambda: [m for m in sys.modules if m.split('.')[0] == 't5x']
    kept = {name: sys.modules.pop(name) for name in imported()}
    yield
    for name in imported():
      del sys.modules[name]
    sys.modules.update(kept)

  def test_package(self, tmp_path, capsys, hosts_met):
    """A job gets its arguments and its output folder."""
    flags = [f'--output_dir={tmp_path}', 'speculative-t5x', 'paper', 'table1']
    assert worker_main.main(flags) == 0
    assert [path.name for path in tmp_path.iterdir()] == ['table1.md']
    assert worker_main.main([*flags, '--bad']) == 2
    assert "the flag '--bad' is unknown" in capsys.readouterr().err
    assert hosts_met == []

  @pytest.mark.parametrize(
      ('name', 'macro'),
      [
          ('t5x.train', 'MODEL_DIR'),
          ('t5x.eval', 'EVAL_OUTPUT_DIR'),
          ('t5x.infer', 'INFER_OUTPUT_DIR'),
      ],
  )
  @pytest.mark.usefixtures('without_t5x')
  def test_t5x(self, tmp_path, monkeypatch, capsys, hosts_met, name, macro):
    """T5X runs as a script after the hosts have connected."""
    package, script = name.split('.')
    fake_cloud.write_program(tmp_path / package / '__init__.py', '')
    code = 'import sys; print(__name__, *sys.argv[1:]); sys.exit(3)\n'
    fake_cloud.write_program(tmp_path / package / f'{script}.py', code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, 'argv', sys.argv)
    caches = []
    monkeypatch.setattr(compilation_cache, 'enable', caches.append)
    flags = ['--num_hosts=4', '--output_dir=gs://b/x', name, '--gin_file=a']
    assert worker_main.main(flags) == 3
    assert capsys.readouterr().out == (
        f'__main__ --gin_search_paths=. --gin_file=a --gin.{macro}="gs://b/x"\n'
    )
    assert hosts_met == ['met'] and caches == ['gs://b/x']
