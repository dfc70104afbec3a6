# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that jobs killed at random moments end with the same files."""

import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

from speculative_t5x import checkpoints
from speculative_t5x.tasks import bulletins
from tests import tiny
from tests.jobs import killed_jobs

pytestmark = pytest.mark.own_process

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
        (30, 5),
        pytest.param(200, 50, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize('job', ['infer', 'eval'])
def test_killed_job_ends_as_if_it_was_not(folder, job, num_examples, num_kills):
  seed = random.randrange(2**31)
  print(f'The seed of the kills is {seed}.')  # shown on failure
  arguments = [job, folder, *map(str, (num_examples, num_kills, seed))]
  subprocess.run(
      [sys.executable, '-m', 'tests.jobs.killed_jobs', *arguments],
      cwd=_CHECKOUT,
      env={
          **os.environ,
          'JAX_PLATFORMS': 'cpu',  # the search for others takes seconds
          'TF_CPP_MIN_LOG_LEVEL': '2',
      },
      check=True,
  )
  whole = folder / 'whole'
  predictions = (whole / 'predictions.jsonl').read_bytes()
  assert predictions.count(b'\n') == num_examples * (1 + (job == 'eval'))
  for killed in folder.glob('killed_*'):
    assert (killed / 'predictions.jsonl').read_bytes() == predictions
    assert _metrics(killed) == _metrics(whole)
  assert (folder / 'killed_0').exists()


def _metrics(folder):
  lines = (folder / 'results.jsonl').read_text()[:-1].split('\n')
  records = [json.loads(line) for line in lines]
  for record in records:
    for side in (record['baseline'], record['speculative']):
      for key in ('walltime_s', 'tokens_per_s'):
        (side or {}).pop(key, None)
  keys = *_KEYS, 'baseline', 'speculative'
  return [{key: record[key] for key in keys} for record in records]
