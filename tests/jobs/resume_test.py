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

from speculative_t5x.tasks import bulletins
from tests import workloads

pytestmark = pytest.mark.long

_CHECKOUT = pathlib.Path(__file__).parents[2]
# Keys of a record that no time changes.
_KEYS = (
    'quality', 'greedy', 'num_examples', 'truncated_inputs', 'padded_share',
    'draft_acceptance_rate', 'tokens_per_target_call', 'baseline',
    'speculative',
)  # fmt: skip


@pytest.mark.parametrize(
    ('num_examples', 'num_kills'),
    [(12, 3), pytest.param(200, 50, marks=pytest.mark.exhaustive)],
)
@pytest.mark.parametrize('job', ['infer', 'eval'])
def test_killed_job_ends_as_if_it_was_not(
    tmp_path, job, num_examples, num_kills
):
  workloads.save_pair(tmp_path)
  pairs = bulletins.read_pairs('validation')[:num_examples]
  text = ''.join(f'{source}\n' for source, _ in pairs)
  (tmp_path / 'input.txt').write_text(text)
  seed = random.randrange(2**31)
  print(f'The seed of the kills is {seed}.')  # shown on failure
  arguments = map(str, [job, tmp_path, num_examples, num_kills, seed])
  subprocess.run(
      [sys.executable, '-m', 'tests.jobs.killed_jobs', *arguments],
      cwd=_CHECKOUT,
      env={
          **os.environ,
          'JAX_PLATFORMS': 'cpu',  # the search for others takes seconds
          # A kill may leave a part of a compiled program.
          'JAX_COMPILATION_CACHE_DIR': f'{tmp_path}/programs',
          'TF_CPP_MIN_LOG_LEVEL': '2',
      },
      check=True,
  )
  expected = (tmp_path / 'whole' / 'predictions.jsonl').read_bytes()
  ids = [json.loads(row)['example_id'] for row in expected.splitlines()]
  assert ids == (1 + (job == 'eval')) * list(range(num_examples))
  killed = list(tmp_path.glob('killed_*'))
  assert killed
  for folder in killed:
    assert (folder / 'predictions.jsonl').read_bytes() == expected
    assert _counts(folder) == _counts(tmp_path / 'whole')


def _counts(folder):
  lines = (folder / 'results.jsonl').read_text().splitlines()
  records = [json.loads(line) for line in lines]
  for record in records:
    for side in (record['baseline'], record['speculative']):
      for key in ('walltime_s', 'tokens_per_s'):
        (side or {}).pop(key, None)
  return [{key: record[key] for key in _KEYS} for record in records]
