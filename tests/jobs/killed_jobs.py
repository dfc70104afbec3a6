# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a job once, and again with SIGKILL at random moments.

  python -m tests.jobs.killed_jobs JOB FOLDER NUM_EXAMPLES NUM_KILLS SEED

FOLDER holds `target`, `draft` and `input.txt`. The outputs are in its folders
`whole` and `killed_<number>`; a killed job resumes in its folder, and a job
that ended before its kill is followed by one in a new folder. Kills are counted
in decoded batches and written files, so that they do not depend on the speed of
the machine. A process is forked per start of the job, because imports take
longer than the job.
"""

from collections.abc import Callable
import functools
import os
import random
import signal
import sys
import time

from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from tests import tiny
from tests import workloads

CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
LENGTHS = {'inputs': 24, 'targets': 16}


def _eval(folder: str, output_dir: str, num_examples: int) -> None:
  """Runs the eval job at two temperatures."""
  evaluation.evaluate(
      **workloads.job_arguments(
          **_arguments(folder),
          mixture_or_task_name=ende.BULLETINS,
          output_dir=output_dir,
          num_examples=num_examples,
          temperature=(0.0, 1.0),
      )
  )


def _infer(folder: str, output_dir: str, num_examples: int) -> None:
  """Runs the infer job with two samples per line."""
  infer.infer(
      **workloads.infer_arguments(
          **_arguments(folder),
          mixture_or_task_name=None,
          inputs=f'{folder}/input.txt',
          vocabulary_file=str(bulletins.VOCABULARY_FILE),
          output_dir=output_dir,
          num_examples=num_examples,
          temperature=1.0,
          num_decodes=2,
          scores=True,
          statistics=True,
      )
  )


def _arguments(folder: str):
  return dict(
      split='validation',
      target_config=CONFIG,
      checkpoint_path=f'{folder}/target',
      drafter=workloads.drafter(f'{folder}/draft', CONFIG),
      task_feature_lengths=LENGTHS,
      gamma=3,
      batch_size=2,
      chunk_batches=2,
      seed=5,
  )


def _start(job: Callable[[], None]) -> tuple[int, int]:
  """Forks a process that runs a job.

  Returns:
    Its id, and a pipe that gets a byte per event, which is a decoded batch or
    the start of a file, and ends with the process.
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


def _finish(process: int, reader: int) -> bool:
  """Waits for the end of a process; returns whether it was killed."""
  _, status = os.waitpid(process, 0)
  os.close(reader)
  code = os.waitstatus_to_exitcode(status)
  assert code in (0, -signal.SIGKILL), code
  return code != 0


def _run(job: Callable[[], None]) -> tuple[int, float]:
  """Runs a job; returns its number of events, and the seconds per event."""
  process, reader = _start(job)
  os.read(reader, 1)
  start, num_events = time.monotonic(), 1
  while found := os.read(reader, 1000):
    num_events += len(found)
  seconds = time.monotonic() - start
  assert not _finish(process, reader)
  return num_events, seconds / num_events


def _run_and_kill(
    job: Callable[[], None], num_events: int, delay_s: float
) -> bool:
  """Runs a job, and kills it some time after its events have happened.

  Returns:
    Whether it was killed; False if it ended before.
  """
  process, reader = _start(job)
  while num_events and (found := os.read(reader, num_events)):
    num_events -= len(found)
  time.sleep(delay_s)
  os.kill(process, signal.SIGKILL)
  return _finish(process, reader)


def main(
    name: str, folder: str, num_examples: str, num_kills: str, seed: str
) -> None:
  """See the head of this file."""
  job = {'eval': _eval, 'infer': _infer}[name]
  run = lambda output: functools.partial(
      job, folder, f'{folder}/{output}', int(num_examples)
  )
  total, seconds = _run(run('whole'))
  moments = random.Random(int(seed))
  # Long enough for the kills to reach the end of a job, although each of them
  # loses what was decoded of a chunk.
  most = max(1, 3 * total // int(num_kills))
  num_left, number = int(num_kills), 0
  while num_left:
    is_killed = _run_and_kill(
        run(f'killed_{number}'),
        moments.randint(1, most),
        # At once, which may be while a file is written, or later.
        moments.choice((0, moments.uniform(0, seconds))),
    )
    num_left -= is_killed
    number += not is_killed  # the job ended: the next one begins anew
  _run(run(f'killed_{number}'))


if __name__ == '__main__':
  main(*sys.argv[1:])
