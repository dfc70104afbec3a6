# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands of `speculative-t5x`, and what it says of them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Job:
  """What a command runs.

  Attributes:
    module: that holds it.
    function: its name there.
    gin_file: whose head says what the job needs.
    summary: of the job, in a line.
    on_host: whether it needs neither an accelerator, nor TensorFlow, nor to be
      given a gin file: its own is read unasked.
  """

  module: str
  function: str
  gin_file: str
  summary: str
  on_host: bool = False


JOBS = {
    'eval': Job(
        'speculative_t5x.jobs.evaluation',
        'evaluate',
        'configs/runs/eval.gin',
        'decodes a task plainly and speculatively, and compares',
    ),
    'train': Job(
        'speculative_t5x.jobs.train',
        'train',
        'configs/runs/train.gin',
        'trains a target or a draft on a task',
    ),
    'check-pair': Job(
        'speculative_t5x.jobs.check_pair',
        'check_pair',
        'configs/runs/check_pair.gin',
        'says whether two checkpoints can work as a pair',
        on_host=True,
    ),
    'convert': Job(
        'speculative_t5x.jobs.convert',
        'convert',
        'configs/runs/convert.gin',
        "writes a checkpoint in T5X's layout of today",
        on_host=True,
    ),
}
USAGE = (
    f'usage: speculative-t5x {{{",".join(JOBS)}}} [--gin_file=FILE...]'
    ' [--gin.NAME=VALUE...] [--gin_search_paths=DIR,...]'
)
_OVERVIEW = """{usage}

commands:
{commands}

flags:
  --gin_file=FILE              a file of settings; several are read in turn, and
                               the last one counts
  --gin.NAME=VALUE             a setting of its own; counts after all files
  --gin_search_paths=DIR,...   where files are looked for, besides here and the
                               folder that holds the package's configs

examples:
  speculative-t5x eval --gin_file=configs/runs/demo.gin
  speculative-t5x check-pair --gin.CHECKPOINT_PATH=/path/to/target \\
      --gin.DRAFT_CHECKPOINT_PATH=/path/to/draft

What a command requires, and what is commonly overridden, is shown by
speculative-t5x COMMAND --help"""


def overview() -> str:
  """What `speculative-t5x --help` shows."""
  lines = [f'  {name:12}{job.summary}' for name, job in JOBS.items()]
  return _OVERVIEW.format(usage=USAGE, commands='\n'.join(lines))
