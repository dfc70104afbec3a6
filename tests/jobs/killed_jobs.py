# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a job once, and once more with SIGKILL at random moments.

  python -m tests.jobs.killed_jobs JOB FOLDER NUM_EXAMPLES NUM_KILLS

FOLDER holds `target`, `draft` and `input.txt`. The outputs are in its folders
`whole` and `killed`. A process is forked per start of the job, because imports
take longer than the job.
"""

from collections.abc import Callable
import os
import random
import signal
import sys
import time

from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer
from speculative_t5x.measurement import interleaved
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from tests import tiny
from tests import workloads

CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
LENGTHS = {'inputs': 24, 'targets': 16}


def run_eval(folder: str, output_dir: str, num_examples: int) -> None:
  """Runs the eval job at two temperatures."""
  evaluation.evaluate(
      **_arguments(folder, mixture_or_task_name=ende.BULLETINS),
      output_dir=output_dir,
      num_examples=num_examples,
      temperature=(0.0, 1.0),
  )


def run_infer(folder: str, output_dir: str, num_examples: int) -> None:
  """Runs the infer job with two samples per line."""
  infer.infer(
      **_arguments(folder, mixture_or_task_name=None),
      inputs=f'{folder}/input.txt',
      vocabulary_file=str(bulletins.VOCABULARY_FILE),
      output_dir=output_dir,
      num_examples=num_examples,
      temperature=1.0,
      num_decodes=2,
      scores=True,
      statistics=True,
  )


def _arguments(folder: str, **workload):
  return workloads.job_arguments(
      **workload,
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
    Its id, and a pipe that has a byte when the first batch is decoded, and
    ends with the process.
  """
  reader, writer = os.pipe()
  process = os.fork()
  if process:
    os.close(writer)
    return process, reader
  warm_up = interleaved.Timer.warm_up

  def warm_up_and_say_so(timer, batch):
    warm_up(timer, batch)
    os.write(writer, b'.')

  interleaved.Timer.warm_up = warm_up_and_say_so
  try:
    job()
    os._exit(0)
  finally:
    os._exit(1)


def _run(job: Callable[[], None], kill_after_s: float | None = None) -> float:
  """Runs a job; returns the seconds from the first batch to the end."""
  process, reader = _start(job)
  os.read(reader, 1)
  start = time.monotonic()
  if kill_after_s is not None:
    time.sleep(kill_after_s)
    os.kill(process, signal.SIGKILL)
  _, status = os.waitpid(process, 0)
  os.close(reader)
  code = os.waitstatus_to_exitcode(status)
  assert code in (0, -signal.SIGKILL), code
  return time.monotonic() - start


def main(name: str, folder: str, num_examples: str, num_kills: str) -> None:
  """See the head of this file."""
  job = {'eval': run_eval, 'infer': run_infer}[name]
  run = lambda output: lambda: job(
      folder, f'{folder}/{output}', int(num_examples)
  )
  seconds = _run(run('whole'))
  moments = random.Random(num_kills)
  for _ in range(int(num_kills)):
    # On average each start does its share of the work.
    _run(run('killed'), moments.uniform(0, 2 * seconds / int(num_kills)))
  _run(run('killed'))


if __name__ == '__main__':
  main(*sys.argv[1:])
