# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""An eval job and an infer job of many chunks, for tests of resumption."""

from collections.abc import Callable

from speculative_t5x.jobs import evaluation
from speculative_t5x.jobs import infer
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
      **workloads.job_arguments(
          **_arguments(folder),
          mixture_or_task_name=ende.BULLETINS,
          output_dir=output_dir,
          num_examples=num_examples,
          temperature=(0.0, 1.0),
      )
  )


def run_infer(folder: str, output_dir: str, num_examples: int) -> None:
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


def job_of(name: str, folder: str, num_examples: str) -> Callable[[str], None]:
  """Returns a function that runs a job in a folder of outputs.

  Args:
    name: 'eval' or 'infer'.
    folder: holds `target`, `draft` and `input.txt`; outputs are in it.
    num_examples: as on a command line.
  """
  job = {'eval': run_eval, 'infer': run_infer}[name]
  return lambda output: job(folder, f'{folder}/{output}', int(num_examples))
