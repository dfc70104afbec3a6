# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on a mesh, with a tiny pair."""

import functools
import json

import pytest

from speculative_t5x.jobs.command_line import main
from speculative_t5x.tasks import ende  # noqa: F401 registers the task
from tests import workloads

_MESH = '--gin.MESH_SHAPE=(4, 2)'
# The inputs of the task in place of the standard input.
_TASK = (
    '--gin.INPUTS=None', '--gin.MIXTURE_OR_TASK_NAME=bulletins_ende',
    '--gin.SPLIT=test',
)  # fmt: skip


@pytest.fixture
def run(tmp_path_factory):
  pair = workloads.save_pair(tmp_path_factory.mktemp('pair'))
  return functools.partial(_run, pair)


def _run(pair, job, gin_file, output, *flags):
  """Return the record and the predictions of a job on six examples."""
  status = main.main(
      [
          job,
          f'--gin_file=configs/runs/{gin_file}.gin',
          f'--gin.CHECKPOINT_PATH={pair.target}',
          f'--gin.DRAFT_CHECKPOINT_PATH={pair.draft}',
          '--gin.TARGET_CONFIG=None',
          '--gin.DRAFT_CONFIG=None',
          "--gin.TASK_FEATURE_LENGTHS={'inputs': 24, 'targets': 12}",
          '--gin.NUM_EXAMPLES=6',
          '--gin.GAMMA=2',
          '--gin.TEMPERATURE=0.0',
          f'--output_dir={output}',
          *flags,
      ]
  )
  assert status == 0
  record = json.loads((output / 'results.jsonl').read_text())
  return record, (output / 'predictions.jsonl').read_text()


@pytest.mark.exhaustive
def test_eval_rounds_its_batches_up(run, tmp_path, capsys):
  record, _ = run(
      'eval', 'demo', tmp_path, _MESH, '--gin.BATCH_SIZE=3',
      '--gin.SHOWN_EXAMPLE=0',
  )  # fmt: skip
  shown = capsys.readouterr()
  assert 'one line per call' in shown.out
  assert 'Batches of 3 examples become batches of 4' in shown.out + shown.err
  assert record['mesh'] == {'data': 4, 'model': 2}
  assert record['greedy']['identical'] == 6


def test_infer_resumes_on_another_mesh(run, tmp_path, capsys):
  """As the decodes of a training do, whose MESH_SHAPE may change."""
  infer = lambda *flags: run(
      'infer', 'infer_bulletins', tmp_path, *_TASK, '--gin.BATCH_SIZE=4', *flags
  )  # fmt: skip
  record, predictions = infer('--gin.MESH_SHAPE=(1, 1)')
  assert record['mesh'] == {}
  capsys.readouterr()
  spread, again = infer(_MESH)
  assert 'finished chunks are taken from' in capsys.readouterr().err
  assert (predictions, spread['mesh']) == (again, {'data': 4, 'model': 2})


def test_walltime_refuses_a_batch_that_the_mesh_does_not_divide(
    tmp_path, capsys
):
  """A padded batch would take the time of another batch size."""
  flags = [
      'walltime',
      '--gin_file=configs/runs/walltime_bulletins.gin',
      '--gin.MESH_SHAPE=(8, 1)',
      '--gin.BATCH_SIZE=(8, 4)',
      f'--output_dir={tmp_path / "mesh"}',
  ]
  assert main.main(flags) == 1
  error = capsys.readouterr().err
  assert 'batch_size 4 cannot be split evenly' in error
  assert not (tmp_path / 'mesh').exists()
