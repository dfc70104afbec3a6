# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that jobs end with the same files after kills.

A test starts this module, with a job's name, a folder, the number of examples,
that of kills and a seed. The folder holds `target` and `input.txt`.
It runs the job once in the folder's `whole`, and again with SIGKILL at random
moments: a killed job resumes in its folder `killed_<number>`, and one that
ended before its kill is followed by another one in a new folder. Kills are
counted in decoded batches and written files, so that they do not depend on the
speed of the machine. A process is forked per start of the job, because imports
take longer than the job.
"""

from collections.abc import Callable
import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.tasks import bulletins
from tests import compilation
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
    [(8, 2), (200, 50)],
)
@pytest.mark.exhaustive
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
      [sys.executable, '-m', 'tests.jobs.resume_test', *arguments],
      cwd=_CHECKOUT,
      env={
          **os.environ,
          'JAX_PLATFORMS': 'cpu',  # the search for others takes seconds
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


def _job(name: str, folder: str, num_examples: int, output: str) -> None:
  """Run the job eval or infer, in many chunks."""
  arguments = dict(
      checkpoint_path=f'{folder}/target',
      drafter=lookup_drafting.Lookup(),
      output_dir=f'{folder}/{output}',
      num_examples=num_examples,
      gamma=1,
      batch_size=2,
      chunk_batches=2,
      seed=5,
  )
  if name == 'eval':
    both = workloads.eval_setup(**arguments, temperature=(0.0, 1.0))
    evaluation.evaluate(both)
  else:
    lines = dict(
        mixture_or_task_name=None,
        inputs=f'{folder}/input.txt',
        vocabulary_file=str(bulletins.VOCABULARY_FILE),
        temperature=1.0,
        num_decodes=2,
        scores=True,
        statistics=True,
    )
    infer.infer(workloads.infer_setup(**arguments, **lines))


def _start(job: Callable[[], None]) -> tuple[int, int]:
  """Fork a process that runs a job; return its id and a pipe.

  The pipe gets a byte per event, which is a decoded batch or the start of a
  file, and ends with the process.
  """
  reader, writer = os.pipe()
  process = os.fork()
  if process:
    os.close(writer)
    return process, reader
  say = lambda: os.write(writer, b'.')
  run, write = interleaved.Timer.run, whole_files.write

  def run_and_say(timer, batches, *, after, **options):
    return run(timer, batches, after=lambda n: say() and after(n), **options)

  interleaved.Timer.run = run_and_say
  whole_files.write = lambda *args: say() and write(*args)
  try:
    job()
    os._exit(0)
  finally:
    os._exit(1)


def _run(job: Callable[[], None], until: int | None = None) -> tuple[int, bool]:
  """Run a job; return the number of its events, and whether it was killed.

  It is killed after a number of events, if one is given.
  """
  process, reader = _start(job)
  count = 0
  while count != until and os.read(reader, 1):
    count += 1
  if count == until:
    os.kill(process, signal.SIGKILL)
  _, status = os.waitpid(process, 0)
  os.close(reader)
  code = os.waitstatus_to_exitcode(status)
  assert code in ((0, -signal.SIGKILL) if count == until else (0,)), code
  return count, code != 0


def main(
    name: str, folder: str, num_examples: str, num_kills: str, seed: str
) -> None:
  """See the head of this file."""
  run = lambda output, until=None: _run(
      functools.partial(_job, name, folder, int(num_examples), output), until
  )
  total, _ = run('whole')
  moments = random.Random(int(seed))
  # Long enough for the kills to reach the end of a job, although each of them
  # loses what was decoded of a chunk.
  most = max(1, 3 * total // int(num_kills))
  num_left, number = int(num_kills), 0
  with compilation.unwritten():  # a kill may leave a part of a program
    while num_left:
      _, is_killed = run(f'killed_{number}', moments.randint(1, most))
      num_left -= is_killed
      number += not is_killed  # the job ended: the next one begins anew
    run(f'killed_{number}')


if __name__ == '__main__':
  main(*sys.argv[1:])
