# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that jobs end with the same files after kills."""

import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.tasks import bulletins
from tests import tiny
from tests.jobs import killed_jobs

pytestmark = pytest.mark.long

_CHECKOUT = pathlib.Path(__file__).parents[2]
# Keys of a record that no time changes.
_KEYS = (
    'quality', 'greedy', 'num_examples', 'truncated_inputs', 'padded_share',
    'draft_acceptance_rate', 'tokens_per_target_call',
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
  """Returns a folder with a pair and 200 lines of text."""
  config = killed_jobs.CONFIG
  checkpoints.save(tmp_path / 'target', 1, tiny.params(config))
  checkpoints.save(tmp_path / 'draft', 1, tiny.params(config, noise=0.1))
  pairs = bulletins.read_pairs('validation')[:200]
  text = ''.join(f'{source}\n' for source, _ in pairs)
  (tmp_path / 'input.txt').write_text(text)
  return tmp_path


@pytest.mark.parametrize(
    ('num_examples', 'num_kills'),
    [
        (20, 3),
        pytest.param(200, 50, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize('job', ['infer', 'eval'])
def test_killed_job_ends_as_if_it_was_not(folder, job, num_examples, num_kills):
  seed = random.randrange(2**31)
  print(f'The seed of the kills is {seed}.')  # shown on failure
  _run(job, folder, num_examples, num_kills, seed)
  killed = list(folder.glob('killed_*'))
  assert killed
  for each in killed:
    _check_same(each, folder / 'whole', job, num_examples)


def _run(job, folder, *arguments):
  """Runs and kills a job in a process of its own."""
  subprocess.run(
      [
          sys.executable,
          '-m',
          'tests.jobs.killed_jobs',
          job,
          *map(str, [folder, *arguments]),
      ],
      cwd=_CHECKOUT,
      env={
          **os.environ,
          'JAX_PLATFORMS': 'cpu',  # the search for others takes seconds
          # A kill may leave a part of a compiled program.
          'JAX_COMPILATION_CACHE_DIR': f'{folder}/programs',
          'TF_CPP_MIN_LOG_LEVEL': '2',
      },
      check=True,
  )


def _check_same(found, whole, job, num_examples):
  """Checks that two output folders have each example once, and all the same."""
  predictions = (whole / 'predictions.jsonl').read_bytes()
  ids = [json.loads(row)['example_id'] for row in predictions[:-1].split(b'\n')]
  num_temperatures = 2 if job == 'eval' else 1
  assert ids == num_temperatures * list(range(num_examples))
  assert (found / 'predictions.jsonl').read_bytes() == predictions
  assert _metrics(found) == _metrics(whole)


def _metrics(folder):
  lines = (folder / 'results.jsonl').read_text()[:-1].split('\n')
  records = [json.loads(line) for line in lines]
  for record in records:
    for side in (record['baseline'], record['speculative']):
      for key in ('walltime_s', 'tokens_per_s'):
        (side or {}).pop(key, None)
  keys = *_KEYS, 'baseline', 'speculative'
  return [{key: record[key] for key in keys} for record in records]
