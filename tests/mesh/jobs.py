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
