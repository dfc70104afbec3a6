# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands of scripts/cloud_tpu/launch.sh."""

import pathlib
import shlex
import signal
import subprocess
import sys
import time

import pytest

from tests.scripts import fake_cloud

_BUCKET, _RUN = fake_cloud.BUCKET, fake_cloud.RUN
_REQUIRED = fake_cloud.REQUIRED
_JOB = ('--', 'eval', '--gin.GAMMA=(3, 7)', "--gin.NAME='it'")


def _dry(cloud: fake_cloud.Cloud, *arguments: str, job=_JOB, **settings: str):
  """Returns the commands of a dry run, as words, and its comment lines."""
  done = cloud.launch(
      *_REQUIRED, '--project=p', '--dry-run', *arguments, *job, **settings
  )
  assert (done.returncode, done.stderr) == (0, '')
  lines = done.stdout.splitlines()
  comments = [line[2:] for line in lines if line.startswith('# ')]
  commands = [shlex.split(x) for x in lines if not x.startswith('#')]
  return commands, comments


def _verb(command: list[str]) -> str:
  words = command[2:] if command[0] == 'timeout' else command
  return ' '.join(words[3:5] if words[:2] == ['gcloud', 'compute'] else words)


def _remote(command: list[str]) -> list[str]:
  """Returns what runs on the worker, as its shell reads it."""
  (text,) = [x for x in command if x.startswith('--command=')]
  return shlex.split(text.removeprefix('--command='))


class TestDryRun:

  def test_one_chip_of_four(self, cloud):
    commands, comments = _dry(cloud, '--type=v4-8', '--chips=1', _BUCKET)
    assert [_verb(command) for command in commands] == [
        'tpu-vm list', 'queued-resources list', 'tpu-vm create',
        'mkdir -p runs/cloud_tpu',
        'git bundle create --quiet runs/cloud_tpu/mine.bundle HEAD',
        'tpu-vm scp', 'tpu-vm ssh', 'tpu-vm ssh', 'tpu-vm delete',
    ]  # fmt: skip
    create, run, delete = commands[2], commands[-2], commands[-1]
    assert '--accelerator-type=v4-8' in create
    assert '--version=tpu-ubuntu2204-base' in create
    assert '--spot' not in create
    words = _remote(run)
    assert words[words.index('speculative-t5x') :] == [
        'speculative-t5x', *_JOB[1:]
    ]  # fmt: skip
    assert {
        'CHIPS=1', 'NUM_HOSTS=1', 'TRACE=no', 'OUTPUT_DIR=gs://bucket/runs/x'
    } <= set(words)  # fmt: skip
    # The machine deletes itself at the time limit by the same command.
    (metadata,) = [x for x in create if x.startswith('--metadata=')]
    assert metadata == (
        '--metadata=time-limit-s=7200,delete-command=' + ' '.join(delete)
    )
    assert comments[-2:] == [
        'v4-8 is 4 chips on 1 host; at most 8.00 chip-hours in 7200 s.',
        'The job uses one chip; all 4 are billed.',
    ]
    assert cloud.calls() == []

  def test_slice_of_several_hosts(self, cloud):
    commands, comments = _dry(
        cloud, '--type=v4-32', '--program=t5x.eval', _BUCKET
    )
    on_workers = [x for x in commands if _verb(x)[:10] == 'tpu-vm ssh']
    assert len(on_workers) == 2
    for command in (*on_workers, commands[5]):
      assert '--worker=all' in command
    assert _remote(on_workers[0])[-1] == 't5x.eval'
    assert 'NUM_HOSTS=4' in _remote(on_workers[1])
    assert 't5x.eval' in _remote(on_workers[1])
    assert comments[-1] == (
        'v4-32 is 16 chips on 4 hosts; at most 32.00 chip-hours in 7200 s.'
    )

  def test_spot_and_output_here(self, cloud):
    commands, comments = _dry(
        cloud, '--type=v5litepod-4', '--spot', '--output-dir=out', '--trace',
        '--time-limit=20m', '--create-flag=--network=n',
    )  # fmt: skip
    create = commands[3]
    assert {'--spot', '--network=n', '--version=v2-alpha-tpuv5-lite'} <= set(
        create
    )
    folder = str(cloud.folder / 'out')
    assert commands[0] == ['mkdir', '-p', folder]
    run, collect, delete = commands[-3:]
    assert {'TRACE=yes', 'OUTPUT_DIR=output'} <= set(_remote(run))
    assert not any('CACHE' in word for word in _remote(run))
    assert _verb(collect) == 'tpu-vm scp' and folder in collect
    assert 'mine:output/*' in collect and '--worker=0' in collect
    assert _verb(delete) == 'tpu-vm delete'
    assert comments[-1] == (
        'v5litepod-4 is 4 chips on 1 host; at most 1.33 chip-hours in 1200 s.'
    )
    assert not (cloud.folder / 'out').exists()

  def test_queued(self, cloud):
    commands, comments = _dry(
        cloud, '--type=v6e-8', '--queued', '--spot', '--queue-limit=6h', _BUCKET
    )
    assert [_verb(x) for x in commands[2:4]] == [
        'queued-resources create', 'queued-resources describe'
    ]  # fmt: skip
    assert {
        '--node-id=mine', '--runtime-version=v2-alpha-tpuv6e', '--spot',
        '--valid-until-duration=21600s',
    } <= set(commands[2])  # fmt: skip
    assert _verb(commands[-1]) == 'queued-resources delete'
    assert '--force' in commands[-1]
    assert comments[-1] == (
        'v6e-8 is 8 chips on 1 host; at most 16.00 chip-hours in 7200 s.'
    )

  def test_own_choices(self, cloud):
    commands, _ = _dry(
        cloud, '--type=v5p-8', '--version=other', _BUCKET,
        JAX_COMPILATION_CACHE_DIR='gs://mine/cache',
    )  # fmt: skip
    assert '--version=other' in commands[2]
    cache = 'JAX_COMPILATION_CACHE_DIR=gs://mine/cache'
    assert cache in _remote(commands[-2])

  def test_keep(self, cloud):
    commands, comments = _dry(cloud, '--type=v4-8', '--keep', _BUCKET)
    assert _verb(commands[-1]) == 'tpu-vm ssh'
    assert (
        '  gcloud compute tpus tpu-vm delete mine --zone=a-zone-b --project=p'
        ' --quiet' in comments
    )

  def test_without_gcloud(self, cloud):
    """gcloud is not called, and the project may be left out."""
    (cloud.bin / 'gcloud').unlink()
    done = cloud.launch(
        *_REQUIRED, '--type=v4-8', _BUCKET, '--dry-run', *_JOB,
        PATH=cloud.only('bash', 'dirname', 'git'),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, '')
    assert '--project=PROJECT' in done.stdout

  def test_changes_in_no_commit(self, cloud):
    (cloud.checkout / 'new').write_text('')
    done = cloud.launch(*_RUN, '--dry-run', *_JOB)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith('warning: this checkout has uncommitted changes')


class TestTypes:

  @pytest.mark.parametrize(
      ('name', 'chips', 'hosts'),
      [
          ('v2-8', 4, 1),
          ('v3-32', 16, 4),
          ('v4-16', 8, 2),
          ('v5p-8', 4, 1),
          ('v5p-128', 64, 16),
          ('v5litepod-1', 1, 1),
          ('v5litepod-8', 8, 1),
          ('v5litepod-16', 16, 4),
          ('v6e-1', 1, 1),
          ('v6e-4', 4, 1),
          ('v6e-64', 64, 16),
      ],
  )
  def test_chips_and_hosts(self, cloud, name, chips, hosts):
    _, comments = _dry(
        cloud, f'--type={name}', '--program=t5x.infer', '--time-limit=1h',
        _BUCKET,
    )  # fmt: skip
    plural = lambda n, noun: f'{n} {noun}{"s" if n > 1 else ""}'
    assert comments[-1] == (
        f'{name} is {plural(chips, "chip")} on {plural(hosts, "host")};'
        f' at most {chips}.00 chip-hours in 3600 s.'
    )

  @pytest.mark.parametrize(
      'name', ['v4', 'v4-4', 'v4-12', 'v9-8', 'v6e-2', 'v6e-24', 'v4-08', '4-8']
  )
  def test_unknown_type(self, cloud, name):
    done = cloud.launch(*_REQUIRED, f'--type={name}', _BUCKET, *_JOB)
    assert done.returncode == 1
    assert done.stderr == (
        f'error: --type={name} is not a TPU type. Give one such as v4-8,'
        ' v5litepod-4, v5p-8 or v6e-8.\n'
    )


class TestBadInput:
  """Each error has one line, and the cloud is not called."""

  @pytest.mark.parametrize(
      ('arguments', 'message'),
      [
          ((), 'give the machine a name: --name='),
          (('--name=x',), 'give the zone of the TPU: --zone='),
          (_REQUIRED, 'give the type of the TPU: --type='),
          ((*_REQUIRED, '--type=v4-8'), 'give the output folder'),
          (_RUN, 'give the job to run after --.'),
          ((*_RUN, 'eval'), "the option 'eval' is unknown."),
          ((*_RUN, '--chip=1', *_JOB), "the option '--chip=1' is unknown."),
          ((*_RUN, '--chips=2', *_JOB), '--chips=2: give 1, or omit'),
          ((*_RUN, '--name=My_TPU', *_JOB), '--name=My_TPU: give lower-case'),
          ((*_RUN, '--zone=a;b', *_JOB), '--zone=a;b is not a zone'),
          ((*_RUN, '--project=p;b', *_JOB), "'p;b' is not the id of"),
          ((*_RUN, '--time-limit=2', *_JOB), '--time-limit=2: give s, m or h'),
          ((*_RUN, '--time-limit=5m', *_JOB), '--time-limit=5m is too short'),
          ((*_RUN, '--queue-limit=x', *_JOB), '--queue-limit=x: give s, m'),
          ((*_RUN, '--program=t5x', *_JOB), '--program=t5x is not one of'),
          ((*_RUN, '--output-dir=gs://b', *_JOB), '--output-dir=gs://b: give'),
          (
              (*_RUN, '--type=v4-32', *_JOB),
              'v4-32 has 4 hosts, and jobs of speculative-t5x run on one host.',
          ),
          (
              (*_RUN, '--type=v4-32', '--program=t5x.eval', '--chips=1', *_JOB),
              '--chips=1 needs a single host, and v4-32 has 4.',
          ),
          (
              (*_RUN, '--type=v4-16', '--program=t5x.eval', '--output-dir=x',
               *_JOB),
              'v4-16 has 2 hosts, which write to one folder',
          ),
          (
              (*_RUN, '--create-flag=--metadata=a=b', *_JOB),
              '--create-flag=--metadata=a=b would replace the metadata',
          ),
          ((*_RUN, '--create-flag=spot', *_JOB), '--create-flag=spot: give a'),
          ((*_RUN, '--zone=us-central2', *_JOB), '--zone=us-central2 is no'),
          ((*_RUN, '--output-dir=s3://b/x', *_JOB), '--output-dir=s3://b/x: g'),
          ((*_RUN, '--', 'simlate'), "'simlate' is not a job of speculative-"),
          (
              (*_RUN, '--', 'eval', '--gin_file=configs/runs/nope.gin'),
              '--gin_file=configs/runs/nope.gin: this commit has no such file.',
          ),
          (
              (*_RUN, '--', 'simulate', '--output_dir=/x'),
              '--output_dir=/x is added by this script.',
          ),
      ],
  )  # fmt: skip
  def test_command_line(self, cloud, arguments, message):
    done = cloud.launch(*arguments)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f'error: {message}')
    assert (done.returncode, done.stdout) == (1, '')
    assert cloud.calls() == []

  def _fails(self, cloud, *arguments, **settings) -> str:
    done = cloud.launch(*arguments, *_JOB, **settings)
    assert (done.returncode, done.stdout) == (1, '')
    return done.stderr

  def test_not_logged_in(self, cloud):
    message = 'error: gcloud is not logged in: run gcloud auth login.\n'
    assert self._fails(cloud, *_RUN, ACCOUNT='') == message
    assert cloud.calls() == []

  def test_no_gcloud(self, cloud):
    path = cloud.only('bash', 'dirname', 'git')
    error = self._fails(cloud, *_RUN, PATH=path)
    assert error.startswith('error: gcloud is not on the PATH. Install the')
    assert error.count('\n') == 1

  def test_no_project(self, cloud):
    flags = [flag for flag in _RUN if flag != '--project=p']
    assert self._fails(cloud, *flags) == (
        'error: no project is set. Give --project=..., or run gcloud config set'
        ' project ...\n'
    )
    assert cloud.calls() == []

  def test_project_of_the_configuration(self, cloud):
    flags = [flag for flag in _RUN if flag != '--project=p']
    assert cloud.launch(*flags, *_JOB, CONFIGURED='q').returncode == 0
    assert all('--project=q' in call for call in cloud.calls())

  def test_changes_in_no_commit(self, cloud):
    (cloud.checkout / 'new').write_text('')
    error = self._fails(cloud, *_RUN)
    assert error.startswith('error: this checkout has uncommitted changes')
    assert cloud.calls() == []

  def test_several_hosts_without_a_key(self, cloud):
    flags = (*_RUN, '--type=v4-16', '--program=t5x.eval')
    fake_cloud.write_program(cloud.bin / 'ssh-add', '#!/bin/sh\nexit 1\n')
    error = self._fails(cloud, *flags)
    assert 'ssh-add ~/.ssh/google_compute_engine' in error
    assert cloud.calls() == []

  def test_name_in_use(self, cloud):
    """The machine with that name is not deleted."""
    error = self._fails(cloud, *_RUN, NAMES='other\nmine')
    assert 'error: mine exists already in a-zone-b. Give another' in error
    assert cloud.verbs() == ['tpu-vm list']

  def test_names_cannot_be_listed(self, cloud):
    error = self._fails(cloud, *_RUN, FAILS='* tpu-vm list *')
    assert 'error: gcloud cannot list the TPUs of p in a-zone-b' in error
    assert cloud.verbs() == ['tpu-vm list']


_WHOLE = [
    'tpu-vm list', 'queued-resources list', 'tpu-vm create', 'tpu-vm scp',
    'tpu-vm ssh', 'tpu-vm ssh', 'tpu-vm delete',
]  # fmt: skip


class TestDeletion:

  def test_success(self, cloud):
    done = cloud.launch(*_RUN, *_JOB)
    assert (done.returncode, done.stdout) == (0, '')
    assert cloud.verbs() == _WHOLE
    assert 'at most 8.00 chip-hours' in done.stderr
    assert list((cloud.checkout / 'runs/cloud_tpu').iterdir()) == []

  @pytest.mark.parametrize(
      ('fails', 'calls', 'status', 'message'),
      [
          ('* tpu-vm create *', 3, 1, 'mine could not be created; the lines'),
          ('* tpu-vm scp *', 4, 1, 'mine could not be reached.'),
          ('*worker_setup.sh*', 5, 1, 'mine could not be set up, and the job'),
          ('*worker_run.sh*', 6, 7, 'the job failed with status 7: the lines'),
      ],
  )
  def test_failure(self, cloud, fails, calls, status, message):
    done = cloud.launch(*_RUN, *_JOB, FAILS=fails, STATUS='7')
    assert done.returncode == status
    assert f'error: {message}' in done.stderr
    assert cloud.verbs() == [*_WHOLE[:calls], 'tpu-vm delete']

  def test_time_limit(self, cloud):
    done = cloud.launch(*_RUN, *_JOB, FAILS='*worker_run.sh*', STATUS='124')
    assert done.returncode == 124
    assert 'reached the time limit. Give a longer --time-limit.' in done.stderr
    assert cloud.verbs()[-1] == 'tpu-vm delete'

  def test_output_of_a_failed_job(self, cloud):
    flags = (*_RUN, '--output-dir=out')
    done = cloud.launch(*flags, *_JOB, FAILS='*worker_run.sh*', STATUS='7')
    assert done.returncode == 7
    assert cloud.verbs()[-2:] == ['tpu-vm scp', 'tpu-vm delete']

  def test_output_that_cannot_be_copied(self, cloud):
    """The machine is deleted nevertheless."""
    done = cloud.launch(
        *_RUN, '--output-dir=out', *_JOB, FAILS='*mine:output/*'
    )
    assert 'error: the output could not be copied to' in done.stderr
    assert done.returncode == 1
    assert cloud.verbs()[-1] == 'tpu-vm delete'

  def test_deletion_that_fails(self, cloud):
    done = cloud.launch(*_RUN, *_JOB, FAILS='compute tpus tpu-vm delete*')
    assert done.returncode == 1
    assert cloud.verbs() == [*_WHOLE, 'tpu-vm delete', 'tpu-vm delete']
    assert done.stderr.splitlines()[-1] == (
        'error: mine could not be deleted, and is billed while it exists.'
        ' Delete it:'
        ' gcloud compute tpus tpu-vm delete mine --zone=a-zone-b --project=p'
        ' --quiet'
    )

  @pytest.mark.parametrize('hangs', ['tpu-vm create', 'worker_run.sh'])
  def test_signal(self, cloud, hangs):
    """A machine that is being made may exist by then."""
    process = subprocess.Popen(
        [str(cloud.checkout / fake_cloud.LAUNCH), *_RUN, *_JOB],
        env=cloud.environment(HANGS=f'*{hangs}*'),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    give_up = time.monotonic() + fake_cloud.SECONDS
    while hangs not in cloud.log.read_text():
      assert time.monotonic() < give_up
      time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=fake_cloud.SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert cloud.verbs()[-2:] == [
        'tpu-vm create' if hangs == 'tpu-vm create' else 'tpu-vm ssh',
        'tpu-vm delete',
    ]

  def test_closed_stdout(self, cloud):
    """After an interrupt of tee, only the printed text is lost."""
    process = subprocess.Popen(
        [str(cloud.checkout / fake_cloud.LAUNCH), *_RUN, *_JOB],
        env=cloud.environment(HANGS='*worker_run.sh*'),
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
    )
    give_up = time.monotonic() + fake_cloud.SECONDS
    while 'worker_run.sh' not in cloud.log.read_text():
      assert time.monotonic() < give_up
      time.sleep(0.02)
    process.stdout.close()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=fake_cloud.SECONDS)
    assert cloud.verbs()[-1] == 'tpu-vm delete'

  @pytest.mark.parametrize('status', ['0', '7'])
  def test_keep(self, cloud, status):
    done = cloud.launch(
        *_RUN, '--keep', *_JOB, FAILS='*worker_run.sh*', STATUS=status
    )
    assert done.returncode == int(status)
    assert cloud.verbs() == _WHOLE[:-1]
    assert 'gcloud compute tpus tpu-vm delete mine' in done.stderr

  def test_keep_without_a_machine(self, cloud):
    cloud.launch(*_RUN, '--keep', *_JOB, FAILS='* tpu-vm create *')
    assert cloud.verbs()[-1] == 'tpu-vm delete'


class TestQueue:

  def _launch(self, cloud, *states, **settings):
    cloud.states.write_text(''.join(f'{state}\n' for state in states))
    return cloud.launch(*_RUN, '--queued', *_JOB, **settings)

  def test_waits(self, cloud):
    done = self._launch(
        cloud, 'WAITING_FOR_RESOURCES', 'WAITING_FOR_RESOURCES', 'ACTIVE'
    )
    assert done.returncode == 0
    assert done.stderr.count('mine is WAITING_FOR_RESOURCES.\n') == 1
    verbs = cloud.verbs()
    assert verbs.count('queued-resources describe') == 3
    assert verbs[-2:] == ['tpu-vm ssh', 'queued-resources delete']

  def test_no_machine(self, cloud):
    done = self._launch(cloud, 'PROVISIONING', 'FAILED')
    assert done.returncode == 1
    assert 'the queue provided no machine: mine is FAILED.' in done.stderr
    assert cloud.verbs()[-2:] == [
        'queued-resources describe', 'queued-resources delete'
    ]  # fmt: skip

  def test_limit(self, cloud):
    cloud.states.write_text('WAITING_FOR_RESOURCES\n' * 9)
    done = cloud.launch(*_RUN, '--queued', '--queue-limit=2m', *_JOB)
    assert done.returncode == 1
    assert 'error: the queue provided no machine in 120 s.' in done.stderr
    assert cloud.verbs().count('queued-resources describe') == 5
    assert cloud.verbs()[-1] == 'queued-resources delete'


class TestStyle:

  def test_shellcheck(self):
    """All shell scripts of the project are checked."""
    scripts = sorted(fake_cloud.CHECKOUT.glob('scripts/**/*.sh'))
    assert len(scripts) > 5
    scripts.append(fake_cloud.CHECKOUT / '.ci/run')
    program = pathlib.Path(sys.executable).parent / 'shellcheck'
    names = [str(path.relative_to(fake_cloud.CHECKOUT)) for path in scripts]
    done = subprocess.run(
        [program, '--external-sources', *names],
        cwd=fake_cloud.CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
