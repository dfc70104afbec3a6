# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of scripts/cloud_tpu against a gcloud that records its calls.

No TPU, account or network is needed. Where a test gives a machine, its home is
a local folder, and the job runs there from the commit to the output.
"""

import functools
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from etils import epath
import jax
import jax.numpy as jnp
import pytest

from scripts.cloud_tpu import worker
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import process

_CHECKOUT = pathlib.Path(__file__).parents[2]
_SECONDS = 120  # a test fails if it waits longer
_BUCKET = '--output-dir=gs://bucket/runs/x'
_RUN = ('--project=p', _BUCKET)
_JOB = ('--', 'eval', '--gin.GAMMA=(3, 7)', "--gin.NAME='it'")
_WHOLE = ['create', 'scp', 'ssh', 'ssh', 'delete']

# Notes each call, hangs or fails at calls of a pattern, and plays a machine.
_GCLOUD = r"""#!/usr/bin/env bash
printf '%q ' "$@" >>"${LOG}"
echo >>"${LOG}"
if [[ "$*" == *startup-script=* ]]; then
  file="$(sed 's/.*startup-script=\([^ ]*\).*/\1/' <<<"$*")"
  cp "${file}" "${HOME}/guard"
fi
if [[ "$*" == ${HANGS-} ]]; then exec sleep 999; fi
if [[ "$*" == *' list '* ]]; then echo "${STATE-READY}"; fi
if [[ "$*" == ${FAILS-} ]]; then exit "${STATUS-1}"; fi
if [[ "$*" == ${FAILS_ONCE-} ]] && mkdir "${HOME}/failed"; then exit 1; fi
[[ -n "${MACHINE-}" ]] || exit 0
case "$4 ${5-}" in
  'scp --recurse') cd "${MACHINE}" && cp -r output/* run/log.txt "$8" ;;
  scp*) mkdir -p "${MACHINE}" && cp "$5" "${MACHINE}" ;;
  ssh*) cd "${MACHINE}" && HOME="${PWD}" bash -c "${8#--command=}" ;;
esac
"""
_RECORDER = '#!/bin/sh\necho "${0##*/} $*" >>"${LOG}"\n'
# Makes the virtual environment; its Python is that of the tests.
_PYTHON3 = f"""#!/bin/sh
echo "python3 $*" >>"${{LOG}}"
[ "$3" = venv ] || exit 0
mkdir -p .venv/bin .venv/lib/python3.13/site-packages
printf '#!/bin/sh\nexec {sys.executable} "$@"\n' >.venv/bin/python
chmod +x .venv/bin/python
"""
# Clones what lies on this computer, and only notes the rest.
_GIT = f"""#!/bin/sh
case "$*" in
  *github.com* | *' checkout '*) echo "git $*" >>"${{LOG}}" ;;
  *) exec {shutil.which('git')} "$@" ;;
esac
"""


class Cloud:
  """A checkout with one commit, and a gcloud that records its calls."""

  def __init__(self, folder: pathlib.Path):
    self.folder, self.log = folder, folder / 'log'
    self.checkout, self.machine = folder / 'checkout', folder / 'machine'
    (self.checkout / 'scripts/cloud_tpu').mkdir(parents=True)
    for path in (_CHECKOUT / 'scripts/cloud_tpu').glob('*.*'):
      shutil.copy(path, self.checkout / 'scripts/cloud_tpu')
    for name in ('requirements.txt', '.gitignore'):
      shutil.copy(_CHECKOUT / name, self.checkout)
    shutil.copytree(_CHECKOUT / 'configs', self.checkout / 'configs')
    (self.checkout / 'my_checkpoints.gin').touch()  # of the page
    identity = 'git -c user.name=n -c user.email=e@example.org'
    subprocess.run(
        f'git init -q && git add . && {identity} commit -qm "A commit"',
        shell=True, check=True, cwd=self.checkout,
    )  # fmt: skip
    self.log.touch()
    self.program('bin/gcloud', _GCLOUD)
    self.program('bin/python3', _PYTHON3)
    self.program('bin/git', _GIT)
    for name in ('systemctl', 'systemd-run'):
      self.program(f'bin/{name}', _RECORDER)

  def program(self, name: str, text: str) -> None:
    """Write a program into the folder of the test."""
    path = self.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)

  def environment(self, **settings: object) -> dict[str, str]:
    path = f'{self.folder}/bin:{os.environ["PATH"]}'
    own = {'PATH': path, 'LOG': self.log, 'HOME': self.folder}
    own['PYTHONPATH'] = _CHECKOUT
    unset = 'JAX_COMPILATION_CACHE_DIR', 'JAX_PLATFORMS', 'TFDS_DATA_DIR'
    kept = {k: v for k, v in os.environ.items() if k not in unset}
    return {k: str(v) for k, v in {**kept, **own, **settings}.items()}

  def run(self, command, **settings) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(x) for x in command], env=self.environment(**settings),
        cwd=self.folder, capture_output=True, text=True, timeout=_SECONDS,
    )  # fmt: skip

  def launch(self, *arguments: str, **settings) -> subprocess.CompletedProcess:
    script = self.checkout / 'scripts/cloud_tpu/launch.sh'
    return self.run([script, *arguments], **settings)

  def work(self, *arguments: str, **settings) -> subprocess.CompletedProcess:
    """Run run.sh on the machine."""
    self.machine.mkdir(exist_ok=True)
    command = 'bash', self.checkout / 'scripts/cloud_tpu/run.sh', *arguments
    settings = {'END_AT': int(time.time()) + 99} | settings
    return self.run(command, HOME=self.machine, **settings)

  def calls(self) -> list[list[str]]:
    """Return the calls that concern a machine: a verb, its name, flags."""
    lines = [shlex.split(line) for line in self.log.read_text().splitlines()]
    return [x[3:] for x in lines if x[:3] == ['compute', 'tpus', 'tpu-vm']]

  def verbs(self) -> list[str]:
    return [call[0] for call in self.calls()]


@pytest.fixture
def cloud(tmp_path):
  return Cloud(tmp_path)


def _dry(cloud, *arguments):
  """Return the commands of a dry run by verb, and its first line."""
  done = cloud.launch('--project=p', '--dry-run', *arguments, *_JOB)
  assert (done.returncode, done.stdout, cloud.calls()) == (0, '', [])
  first, *lines = done.stderr.splitlines()
  words = [shlex.split(line.removeprefix('+')) for line in lines]
  tpu = [x[x.index('tpu-vm') + 1 :] for x in words if 'tpu-vm' in x]
  assert [x[0] for x in tpu if x[1] != '--recurse'] == _WHOLE
  return tpu, first


def test_one_chip(cloud):
  (create, _, _, run, delete), first = _dry(cloud, _BUCKET, '--chips=1')
  assert first.endswith(': v4-8, at most 8 chip-hours')
  assert {'--accelerator-type=v4-8', '--zone=us-central2-b'} <= set(create)
  assert create[1] == delete[1] and '--spot' not in create
  (remote,) = (shlex.split(x[10:]) for x in run if x.startswith('--command'))
  assert remote[-7:] == [
      '--num_hosts=1', '--chips=1', '--output_dir=gs://bucket/runs/x',
      'speculative-t5x', *_JOB[1:],
  ]  # fmt: skip


@pytest.mark.parametrize(
    ('flags', 'runtime', 'chips', 'hosts'),
    [
        (['--type=v4-32', '--trace', '--spot'], 'tpu-ubuntu2204-base', 16, 4),
        (['--type=v5p-8', '--zone=us-east5-a'], 'v2-alpha-tpuv5', 4, 1),
        (
            ['--type=v5litepod-16', '--zone=us-west4-a'],
            'v2-alpha-tpuv5-lite', 16, 4,
        ),
        (['--type=v6e-8', '--zone=us-south1-ai1b'], 'v2-alpha-tpuv6e', 8, 1),
        (['--type=v6e-1', '--zone=us-central1-ai1a'], 'v2-alpha-tpuv6e', 1, 1),
    ],
)  # fmt: skip
def test_types(cloud, flags, runtime, chips, hosts):
  job = ['--program=t5x.eval', '--hours=1', _BUCKET]
  (create, *others, _), first = _dry(cloud, *flags, *job)
  assert f'at most {chips} chip-hours' in first
  assert f'--version={runtime}' in create
  zones = [flag for flag in flags if flag.startswith('--zone')]
  assert {*zones} <= {*create}
  assert all('--worker=all' in each for each in others)
  assert f'--num_hosts={hosts} ' in str(others[-1])
  for flag, commands in (('--spot', create), ('--trace', others[-1])):
    assert (flag in str(commands)) == (flag in flags)


def test_only_folders_in_buckets_reach_the_machine(cloud):
  done = cloud.launch(
      '--project=p', '--dry-run', _BUCKET, *_JOB,
      TFDS_DATA_DIR='gs://b/tfds', JAX_COMPILATION_CACHE_DIR='my/cache',
  )  # fmt: skip
  assert ' TFDS_DATA_DIR=gs://b/tfds ' in done.stderr.replace('\\', '')
  assert 'my/cache' not in done.stderr
  assert 'JAX_COMPILATION_CACHE_DIR is not in a bucket' in done.stderr


def test_gin_files_that_the_machine_has(cloud):
  names = 'gs://b/my.gin', 't5x/eval.gin', 'configs/runs/eval.gin'
  job = [*_JOB, *(f'--gin_file={name}' for name in names)]
  for more in ([], ['--gin_file=my.gin', '--gin_search_paths=gs://b']):
    done = cloud.launch(*_RUN, '--dry-run', *job, *more)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        ((_BUCKET,), 'the job'),
        (_JOB, '--output-dir'),
        ((*_RUN, '--chip=1', *_JOB), '--chip=1'),
        ((*_RUN, '--chips=2', *_JOB), '--chips=2'),
        ((*_RUN, '--type=v3-8', *_JOB), '--type'),
        ((*_RUN, '--type=v6e-1', *_JOB), '--zone'),
        ((*_RUN, '--program=t5x.export', *_JOB), '--program'),
        ((*_RUN, '--hours=2h', *_JOB), '--hours'),
        ((*_RUN, '--type=v4-32', *_JOB), 'v4-32 has 4 hosts'),
        (('--output-dir=x', '--spot', *_JOB), '--spot'),
        ((_BUCKET, *_JOB), '--project'),
        ((*_RUN, *_JOB, '--gin_file=/my dir/my.gin'), '/my dir/my.gin'),
        ((*_RUN, *_JOB, '--gin_file=runs/my.gin'), 'runs/my.gin'),
        ((*_RUN, *_JOB, '--gin.CHECKPOINT_PATH="/data/t5"'), '/data/t5'),
        ((*_RUN, *_JOB, '--gin.NGRAM_TABLE=~/table'), '~/table'),
    ],
)
def test_refused_in_one_line(cloud, arguments, named):
  done = cloud.launch(*arguments)
  (line,) = done.stderr.splitlines()
  assert line.startswith('error: ') and named in line
  assert (done.returncode, cloud.calls()) == (1, [])


def test_misspelt_settings(cloud):
  """The package tells them, where it is installed beside the launcher."""
  python = cloud.checkout / '.venv/bin/python'
  cloud.program(python, f'#!/bin/sh\nexec {sys.executable} "$@"\n')
  job = '--', 'simulate', '--gin.GAMMA=3', '--gin.ALPHA=0.5'
  assert cloud.launch(*_RUN, '--dry-run', *job).returncode == 0
  done = cloud.launch(*_RUN, '--dry-run', *job, '--gin.GAMMMA=3')
  assert done.returncode == 1 and cloud.calls() == []
  assert 'Did you mean GAMMA?' in done.stderr


def test_uncommitted_changes_are_refused(cloud):
  (cloud.checkout / 'new').write_text('')
  assert 'uncommitted changes' in cloud.launch(*_RUN, *_JOB).stderr


@pytest.mark.parametrize(
    ('fails', 'verbs'),
    [
        ('', _WHOLE),
        ('* create *', ['create', 'delete']),
        ('* scp *', ['create', 'scp', 'delete']),
        ('*set_up*', ['create', 'scp', 'ssh', 'delete']),
        ('*run.sh*', _WHOLE),
        ('* delete *', [*_WHOLE, 'delete', 'list']),
    ],
)
def test_machine_is_deleted(cloud, fails, verbs):
  """However the run ends, and no other machine is touched."""
  done = cloud.launch(*_RUN, *_JOB, FAILS=fails, STATUS=7)
  assert done.returncode == {'': 0, '* delete *': 1}.get(fails, 7)
  assert cloud.verbs() == verbs
  if 'delete' in fails:
    assert 'is billed until' in done.stderr
  assert cloud.launch(*_RUN, *_JOB).returncode == 0
  text = [' '.join(call) for call in cloud.calls()]
  names = [re.findall(r'speculative-\d+-\d+-\d+', each)[0] for each in text]
  first, second = names[0], names[-1]
  expected = [first] * len(verbs) + [second] * len(_WHOLE)
  assert first != second and names == expected


def test_no_capacity(cloud):
  """A machine that could not be created is not said to be billed."""
  done = cloud.launch(*_RUN, *_JOB, FAILS='* @(create|delete) *', STATE='')
  assert cloud.verbs() == ['create', 'delete', 'delete', 'list']
  assert done.returncode == 1 and 'billed' not in done.stderr


@pytest.mark.parametrize('hangs', ['create', 'run'])
def test_signal(cloud, hangs):
  """Also after an interrupt of tee, which closes the output."""
  process = subprocess.Popen(
      [cloud.checkout / 'scripts/cloud_tpu/launch.sh', *_RUN, *_JOB],
      env=cloud.environment(HANGS=f'*[ /]{hangs}[ .]*'),
      stderr=subprocess.STDOUT, stdout=subprocess.PIPE,
  )  # fmt: skip
  give_up = time.monotonic() + _SECONDS
  while not re.search(rf'[ /]{hangs}\b', cloud.log.read_text()):
    assert time.monotonic() < give_up
    time.sleep(0.02)
  process.stdout.close()
  process.send_signal(signal.SIGTERM)
  assert process.wait(timeout=_SECONDS) == 143
  assert cloud.verbs()[-1] == 'delete'


@pytest.mark.parametrize(
    ('spot', 'state', 'machines'),
    [
        (True, 'PREEMPTED', 5), (True, 'TERMINATED', 5), (True, 'READY', 1),
        (True, '', 1), (False, 'PREEMPTED', 1),
    ],
)  # fmt: skip
def test_preempted_machine_is_replaced(cloud, spot, state, machines):
  flags = ['--spot'] if spot else []
  settings = dict(FAILS='*run.sh*', STATE=state)
  assert cloud.launch(*_RUN, *flags, *_JOB, **settings).returncode == 1
  assert cloud.verbs().count('create') == machines
  assert cloud.verbs().count('delete') == machines


def test_job_goes_on_after_a_preemption(cloud):
  settings = dict(FAILS_ONCE='*run.sh*', STATE='PREEMPTED')
  assert cloud.launch(*_RUN, '--spot', *_JOB, **settings).returncode == 0
  replaced = [*_WHOLE[:-1], 'list', 'delete']
  assert cloud.verbs() == [*replaced, *_WHOLE]
  jobs = [x[-3] for x in cloud.calls() if 'run.sh' in str(x)]
  assert len(jobs) == 2 and jobs[0] == jobs[1]


def test_guard(cloud):
  """The machine deletes itself at the limit, which a restart leaves as is."""
  cloud.launch(*_RUN, *_JOB)
  name = cloud.calls()[0][1]
  cloud.run(['bash', cloud.folder / 'guard'])
  text = (cloud.folder / 'guard').read_text()
  old = re.sub(r'left=\S+', 'left=$((1', text, count=1)
  cloud.run(['bash', '-c', old])
  now, later = re.findall(
      r'--on-active=(\d+)s.*? delete (speculative-\S+) ',
      cloud.log.read_text().replace('\\\n', ''),
      re.DOTALL,
  )
  assert 7000 < int(now[0]) <= 7200 and later[0] == '1'
  assert now[1] == name


def test_from_the_commit_to_the_output(cloud):
  done = cloud.launch(
      '--project=p', '--output-dir=out', '--', 'paper', 'table1',
      MACHINE=cloud.machine, JAX_PLATFORMS='cpu',
  )  # fmt: skip
  assert done.returncode == 0, done.stderr
  written = {path.name for path in (cloud.folder / 'out').iterdir()}
  assert written == {'log.txt', 'table1.md'}
  log = cloud.log.read_text()
  assert re.search(r'python3 -m pip install --quiet uv==[\d.]+\n', log)
  assert '-r requirements-tpu.txt -r requirements-t5x.txt' in log
  venv = cloud.machine / 'speculative_t5x/.venv'
  installed = (venv / 'lib/python3.13/site-packages/t5x.pth').read_text()
  names = ['t5x', 'airio', 'jestimator']
  assert installed.splitlines() == [str(venv / name) for name in names]


def test_fails_without_a_tpu(cloud, monkeypatch):
  """The launched job does not run on the machine's CPU."""
  monkeypatch.delenv('TPU_VISIBLE_CHIPS', raising=False)
  done = cloud.launch(
      '--project=p', '--output-dir=out', '--', 'paper', 'table1',
      MACHINE=cloud.machine,
  )  # fmt: skip
  assert done.returncode == 1 and cloud.verbs()[-1] == 'delete'
  (line,) = re.findall('^error: .*', done.stdout, re.MULTILINE)
  assert 'JAX_PLATFORMS=tpu,cpu asks for devices' in line
  assert not (cloud.folder / 'out/table1.md').exists()


def test_shown_again_after_a_lost_connection(cloud):
  cloud.program('checkout/.venv/bin/python', '#!/bin/sh\necho "$@"; exit 3\n')
  done = cloud.work('t5x.eval', 'a b')
  assert done.stdout == '-u -m scripts.cloud_tpu.worker t5x.eval a b\n'
  again = cloud.work('other')
  assert (again.stdout, again.returncode) == (done.stdout, 3)


@pytest.mark.parametrize('seconds', [2, -9])
def test_interrupted_before_the_deletion(cloud, seconds):
  text = 'trap "echo interrupted; exit" INT\nsleep 9 & wait\n'
  cloud.program('checkout/.venv/bin/python', f'#!/bin/sh\n{text}')
  done = cloud.work('x', END_AT=int(time.time()) + seconds)
  assert (done.returncode, done.stdout) == (124, 'interrupted\n')


def _page_blocks():
  page = (_CHECKOUT / 'docs/tpu_and_gpu.md').read_text()
  return re.findall('```sh\n(.*?)```', page, re.DOTALL)


@pytest.mark.parametrize('block', _page_blocks())
def test_commands_of_the_page(cloud, block):
  """They run as printed, each with what its placeholders stand for."""
  (cloud.folder / 'speculative_t5x').symlink_to(cloud.checkout)
  cloud.program('bin/git', _GIT.replace('*github.com*', 'clone\\ repository'))
  for name in ('speculative-t5x', 'sky', 'python', 'pip'):
    cloud.program(f'bin/{name}', _RECORDER)
  (cloud.checkout / '.venv/bin').mkdir(parents=True)
  (cloud.checkout / '.venv/bin/activate').touch()
  text = re.sub('<this repository>', 'repository', block)
  text = re.sub('<([a-z ]+)>', lambda match: match[1].replace(' ', '-'), text)
  if 'launch.sh' in text:
    cloud.program('bin/gcloud', '#!/bin/sh\nexit 1\n')  # a dry run needs none
    text = f'cd speculative_t5x\n{text}'
  done = cloud.run(['bash', '-euo', 'pipefail', '-c', text])
  assert done.returncode == 0, done.stderr
  recorded = cloud.log.read_text() + done.stderr
  jobs = r'^(speculative-t5x|sky|python -m) ([\w.]+)'
  for program, job in re.findall(jobs, text, re.M):
    assert f'{program} {job}' in recorded
  assert len(re.findall(r'^gcloud', text, re.M)) == len(
      re.findall(r'^(?:auth|config|projects|compute) ', recorded, re.M)
  )


def test_same_t5x_as_documented():
  set_up = (_CHECKOUT / 'scripts/cloud_tpu/set_up.sh').read_text()
  documented = (_CHECKOUT / 'docs/t5x.md').read_text()
  repositories = re.findall(r'(\S+/\S+) ([0-9a-f]{40})', set_up)
  assert len(repositories) == 3
  for name, commit in repositories:
    assert f'| `{name}` | commit `{commit}` |' in documented


def test_trace_of_a_failing_job(tmp_path):
  folder = epath.Path(tmp_path) / 'output' / 'trace'
  with pytest.raises(ValueError, match='in the job'):
    with worker.traced(folder):
      jax.block_until_ready(jnp.arange(8) * 2)
      raise ValueError('in the job')
  (trace,) = folder.glob('plugins/profile/*/*.xplane.pb')
  assert trace.stat().length > 0


@pytest.fixture
def calls(monkeypatch):
  """Record what a worker does instead of doing it."""
  made = []
  steps = [
      (worker.t5x_multihost, 'connect'), (process, 'open_devices'),
      (compilation_cache, 'enable'), (worker.t5x_multihost, 'run_script'),
      (worker.package_main, 'main'),
  ]  # fmt: skip
  for module, name in steps:
    note = functools.partial(lambda *args: made.append(args), name)
    monkeypatch.setattr(module, name, note)
  monkeypatch.setattr(jax.config, 'update', functools.partial(note, 'config'))
  monkeypatch.setattr(os, 'environ', {})
  return made


def test_t5x_on_several_hosts(calls):
  flags = '--num_hosts=4', '--output_dir=gs://b/x', 't5x.train', '--a'
  worker.main(flags)
  expected = ['--gin_search_paths=.', '--a', '--gin.MODEL_DIR="gs://b/x"']
  assert calls[-3:] == [
      ('connect',), ('enable', 'gs://b/x'), ('run_script', 'train', expected)
  ]  # fmt: skip


def test_one_chip_of_a_host(calls):
  worker.main(['--chips=1', '--output_dir=x', 'speculative-t5x', 'eval'])
  assert calls[-2:] == [('open_devices',), ('main', ['eval', '--output_dir=x'])]
  assert os.environ.items() >= {
      'TPU_VISIBLE_CHIPS': '0', 'TPU_CHIPS_PER_PROCESS_BOUNDS': '1,1,1',
      'TPU_PROCESS_BOUNDS': '1,1,1',
  }.items()  # fmt: skip


def test_shellcheck():
  """All shell scripts of the project are checked."""
  scripts = [*_CHECKOUT.glob('scripts/**/*.sh'), _CHECKOUT / '.ci/run']
  program = pathlib.Path(sys.executable).parent / 'shellcheck'
  done = subprocess.run([program, *scripts], capture_output=True, text=True)
  assert done.returncode == 0, done.stdout
