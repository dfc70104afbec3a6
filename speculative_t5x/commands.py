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
    output_macro: what --output_dir sets.
    needs_output: whether it cannot do without an output folder.
    flags: names of flags of its own, each of which sets the macro of its name.
    is_complete: whether its gin file is read unasked.
    on_host: whether it needs no accelerator.
    is_resumed: whether it goes on from what it finds in its output folder.
    folder: of the gin files that it carries out by name, one after another;
      each sets up the function of its name. None for a job of one function.
  """

  module: str
  function: str
  gin_file: str
  summary: str
  output_macro: str = 'OUTPUT_DIR'
  needs_output: bool = True
  flags: tuple[str, ...] = ()
  is_complete: bool = False
  on_host: bool = False
  is_resumed: bool = False
  folder: str | None = None


JOBS = {
    'eval': Job(
        'speculative_t5x.jobs.evaluation',
        'evaluate',
        'configs/runs/eval.gin',
        'decodes a task plainly and speculatively, and compares',
        output_macro='EVAL_OUTPUT_DIR',
    ),
    'walltime': Job(
        'speculative_t5x.jobs.walltime',
        'measure_walltime',
        'configs/runs/walltime.gin',
        'times what speculation gains on a task, and finds out why',
        is_resumed=True,
    ),
    'simulate': Job(
        'speculative_t5x.jobs.simulate',
        'simulate',
        'configs/runs/simulate.gin',
        'the same for T5 1.1 of any sizes, at a rate of acceptance given',
        is_complete=True,
        is_resumed=True,
    ),
    'paper': Job(
        'speculative_t5x.jobs.paper',
        '',
        'configs/paper/paper.gin',
        "makes the paper's tables and figures, all or by name",
        folder='configs/paper',
        is_resumed=True,
    ),
    'train': Job(
        'speculative_t5x.jobs.train',
        'train',
        'configs/runs/train.gin',
        'trains a target or a draft on a task',
        output_macro='MODEL_DIR',
        is_resumed=True,
    ),
    'check-pair': Job(
        'speculative_t5x.jobs.check_pair',
        'check_pair',
        'configs/runs/check_pair.gin',
        'says whether two checkpoints can work as a pair',
        needs_output=False,
        is_complete=True,
        on_host=True,
    ),
    'tpu-preflight': Job(
        'speculative_t5x.jobs.tpu_preflight',
        'tpu_preflight',
        'configs/runs/tpu_preflight.gin',
        'compiles T5 1.1 for a TPU without one, and reads it',
        needs_output=False,
        flags=('target', 'draft', 'topology'),
        is_complete=True,
        on_host=True,
    ),
    'convert': Job(
        'speculative_t5x.jobs.convert',
        'convert',
        'configs/runs/convert.gin',
        "writes a checkpoint in T5X's layout of today",
        is_complete=True,
        on_host=True,
    ),
}
USAGE = (
    f'usage: speculative-t5x {{{",".join(JOBS)}}} [--gin_file=FILE...]'
    ' [--gin.NAME=VALUE...] [--gin_search_paths=DIR,...] [--output_dir=DIR]'
)
_OVERVIEW = """{usage}

commands:
{commands}

flags:
  --gin_file=FILE              a file of settings; several are read in turn, and
                               the last one counts
  --gin.NAME=VALUE             a setting of its own; counts after all files
  --output_dir=DIR             where the results go
  --gin_search_paths=DIR,...   where files are looked for, besides here and the
                               folder that holds the package's configs

examples:
  speculative-t5x eval --gin_file=configs/runs/demo.gin
  speculative-t5x paper table1 figure2 --output_dir=/path/to/folder
  speculative-t5x check-pair --gin.CHECKPOINT_PATH=/path/to/target \\
      --gin.DRAFT_CHECKPOINT_PATH=/path/to/draft

What a command requires, and what is commonly overridden, is shown by
speculative-t5x COMMAND --help"""


def overview() -> str:
  """What `speculative-t5x --help` shows."""
  lines = [f'  {name:15}{job.summary}' for name, job in JOBS.items()]
  return _OVERVIEW.format(usage=USAGE, commands='\n'.join(lines))
