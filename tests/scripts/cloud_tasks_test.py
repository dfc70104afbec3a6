# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the SkyPilot task files in configs/cloud."""

import os
import pathlib
import re
import subprocess

import pytest
import yaml

from scripts.cloud_tpu import worker
from speculative_t5x.jobs.command_line import flags
from speculative_t5x.jobs.command_line import gin_job
from speculative_t5x.jobs.command_line import t5x_multihost

_CHECKOUT = pathlib.Path(__file__).parents[2]
_FILES = sorted((_CHECKOUT / 'configs/cloud').glob('*.yaml'))
_BY_RAY = _CHECKOUT / 'configs/cloud/infer_ray.yaml'


def _tasks(*left_out):
  return [
      pytest.param(yaml.safe_load(path.read_text()), id=path.stem)
      for path in _FILES
      if path not in left_out
  ]


def _shown(task, **values: str) -> list[str]:
  """Run the task, with a function that shows its arguments as each program."""
  envs = {k: v or values.get(k, 'gs://b/x') for k, v in task['envs'].items()}
  envs['SETTINGS'] = '--gin.GAMMA=7'
  shown = '() { printf "%s\\n" "$@"; }\n'
  done = subprocess.run(
      ['bash', '-euc', re.sub(r'\.venv/bin/(python|speculative-t5x|ray)',
                              'shown', task['run'])],
      env={**os.environ, 'SKYPILOT_NUM_NODES': '2',
           'BASH_FUNC_shown%%': shown.strip(), **envs, **values},
      capture_output=True, text=True, check=True,
  )  # fmt: skip
  return done.stdout.splitlines()


def _arguments(task, **values: str) -> list[str]:
  """Return the arguments that the task gives to the worker."""
  module, name, *arguments = _shown(task, **values)
  assert (module, name) == ('-m', worker.__name__)
  return arguments


@pytest.mark.parametrize('task', _tasks(_BY_RAY))
def test_job_is_complete(task, monkeypatch, tmp_path):
  """Its command is valid, and has all settings that the job requires."""
  monkeypatch.chdir(_CHECKOUT)
  ran = []
  for module, name in [
      (worker.package_main, 'main'), (t5x_multihost, 'run_script'),
      (worker.compilation_cache, 'enable'), (t5x_multihost, 'connect'),
      (worker.process, 'open_devices'),
  ]:  # fmt: skip
    monkeypatch.setattr(module, name, lambda *args: ran.append(args))
  monkeypatch.setattr(worker.jax.config, 'update', lambda *_: None)
  monkeypatch.setattr(os, 'environ', dict(os.environ))
  checkpoints = tmp_path / 'checkpoints.gin'
  checkpoints.write_text(''.join(
      f"{task}_{model} = 'gs://b/x'\n"
      for task in ('ENDE', 'CNNDM')
      for model in ('TARGET', 'SMALL', 'BASE', 'LARGE')
  ))  # fmt: skip
  numbers = dict.fromkeys(['TRAIN_STEPS', 'DECODES_EXAMPLES'], '9')
  worker.main(_arguments(task, CHECKPOINTS=str(checkpoints), **numbers))
  assert '--gin.GAMMA=7' in ran[-1][-1]
  if 't5x.eval' in task['run']:
    assert ran[-1][0] == 'eval'
    assert '--gin.CHECKPOINT_PATH="gs://b/x"' in ran[-1][1]
    return
  (arguments,) = ran[-1]
  if arguments[0] == 'distill':
    arguments.remove('--gin.GAMMA=7')
  commands = flags.parse(arguments)
  assert commands
  for command in commands:
    gin_job.configure(command)


class TestRay:
  """The first node runs the job, and all are nodes of a Ray cluster."""

  _NODES = {'SKYPILOT_NODE_IPS': '10.0.0.1\n10.0.0.2'}

  def test_first_node(self, monkeypatch):
    monkeypatch.chdir(_CHECKOUT)
    task = yaml.safe_load(_BY_RAY.read_text())
    lines = _shown(task, SKYPILOT_NODE_RANK='0', **self._NODES)
    start, end = lines.index('infer'), lines.index('stop')
    assert lines[:2] == ['start', '--head'] and '--port=6399' in lines
    (command,) = flags.parse(lines[start:end])
    bindings = dict(command.bindings)
    assert bindings['RAY_ADDRESS'] == "'10.0.0.1:6399'"
    assert bindings['RAY_NODES'] == '2' and bindings['GAMMA'] == '7'
    gin_job.configure(command)

  def test_others_join_it(self):
    task = yaml.safe_load(_BY_RAY.read_text())
    function = '() { echo "$1"; [[ $1 == start ]]; }'  # then the head is gone
    lines = _shown(
        task, SKYPILOT_NODE_RANK='1', **self._NODES,
        **{'BASH_FUNC_shown%%': function},
    )  # fmt: skip
    assert lines == ['start']  # `ray status` prints nothing
