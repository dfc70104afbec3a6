# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands of `speculative-t5x`, and its overview."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Job:
  """The job that a command runs.

  Attributes:
    module: module of the job.
    function: name of the job's function in the module.
    gin_file: gin file whose head comment is the command's help.
    summary: one-line description of the job.
    output_macro: macro that --output_dir sets.
    flags: names of further flags; each sets the macro of the same name in upper
      case.
    is_complete: whether `gin_file` is read without --gin_file.
    on_host: whether the job runs on the host, without an accelerator.
    is_resumed: whether the job resumes from its output folder.
    may_change: macros that a resumed job may change, if its output folder does
      not state its settings otherwise; None for other jobs.
    optional: macros that are None where no gin file sets them.
    folder: folder of gin files that the command runs by name, one after
      another; each configures the function of the same name. None for a job
      with one function.
  """

  module: str
  function: str
  gin_file: str
  summary: str
  output_macro: str = 'OUTPUT_DIR'
  flags: tuple[str, ...] = ()
  is_complete: bool = False
  on_host: bool = False
  is_resumed: bool = False
  may_change: tuple[str, ...] | None = None
  optional: tuple[str, ...] = ()
  folder: str | None = None


# The folders of gin files that are the choices of a macro.
CHOICES = {
    'DRAFTER': 'configs/drafters',
    'RULE': 'configs/rules',
    'POLICY': 'configs/policies',
    'DRAFT': 'configs/origins',
    'DIVERGENCE': 'configs/divergences',
    'DECODES': 'configs/training_data',
    'REFERENCES': 'configs/training_data',
    'LOGGERS': 'configs/loggers',
}
# Names that gin files used before the rooms of the package changed, and those
# of today; for one release.
RENAMED = {
    f'speculative_t5x.{old}': f'speculative_t5x.{new}'
    for old, new in (
        ('answers', 'decoder.answers'),
        ('drafters.source', 'loading.drafters.source'),
        ('simulation', 'research.simulation.simulated_walltimes'),
        ('tasks.decodes', 'tasks.decoded_task'),
        ('tasks.summaries', 'tasks.bulletin_summaries'),
        ('tpu_aot.bench', 'research.tpu_aot.bench'),
        ('training.decodes', 'jobs.target_decodes'),
    )
} | {
    f'speculative_t5x.drafters.{old}.{name}': (
        f'speculative_t5x.loading.drafters.{new}.{name}'
    )
    for old, new, name in (
        ('draft_model', 'draft_model_source', 'FromCheckpoint'),
        ('early_exit', 'early_exit_source', 'FromCheckpoint'),
        ('early_exit', 'early_exit_source', 'OfTarget'),
        ('in_order', 'in_order_source', 'FromSources'),
        ('lookup', 'lookup_source', 'FromContext'),
        ('shared_encoder', 'shared_encoder_source', 'FromCheckpoint'),
        ('tables', 'table_source', 'FromFile'),
    )
}
# They change neither what is trained nor on what; NUM_PARTS draws other dropout
# masks, and TRAIN_STEPS moves the decay of the learning rate.
_OF_TRAININGS = (
    'MODEL_DIR', 'DECODES_DIR', 'TRAIN_STEPS', 'CHECKPOINT_PERIOD', 'KEEP',
    'PATIENCE', 'NUM_PARTS', 'MESH_SHAPE',
)  # fmt: skip
# A checkpoint states the sizes of its network itself.
_CONFIGS = 'TARGET_CONFIG', 'DRAFT_CONFIG'
JOBS = {
    'eval': Job(
        'speculative_t5x.jobs.evaluation',
        'evaluate',
        'configs/runs/eval.gin',
        'decodes a task plainly and speculatively, and compares the two',
        output_macro='EVAL_OUTPUT_DIR',
        is_resumed=True,
        optional=_CONFIGS,
    ),
    'infer': Job(
        'speculative_t5x.jobs.infer',
        'infer',
        'configs/runs/infer.gin',
        'decodes lines of text, or the inputs of a task',
        output_macro='INFER_OUTPUT_DIR',
        is_resumed=True,
        optional=(*_CONFIGS, 'DRAFTER'),
    ),
    'compare': Job(
        'speculative_t5x.jobs.compare',
        'compare',
        'configs/runs/compare.gin',
        'compares two runs of eval or infer: identical up to rounding?',
        output_macro='COMPARE_OUTPUT_DIR',
        flags=('first', 'second'),
        is_complete=True,
        optional=(*_CONFIGS, 'DRAFTER'),
    ),
    'walltime': Job(
        'speculative_t5x.jobs.walltime',
        'measure_walltime',
        'configs/runs/walltime.gin',
        'measures the speedup on a task, and what explains it',
        is_resumed=True,
        optional=_CONFIGS,
    ),
    'methods': Job(
        'speculative_t5x.jobs.methods',
        'measure_methods',
        'configs/runs/methods.gin',
        'compares drafters, rules and policies on several tasks',
        is_resumed=True,
    ),
    'simulate': Job(
        'speculative_t5x.jobs.simulate',
        'simulate',
        'configs/runs/simulate.gin',
        'the same for T5 1.1 of any size, with simulated acceptance',
        is_complete=True,
        is_resumed=True,
    ),
    'paper': Job(
        'speculative_t5x.jobs.paper',
        '',
        'configs/paper/paper.gin',
        "makes the paper's tables and figures, all or the named ones",
        folder='configs/paper',
        is_resumed=True,
        optional=_CONFIGS,
    ),
    'train': Job(
        'speculative_t5x.jobs.train',
        'train',
        'configs/runs/train.gin',
        'trains a target or a draft model on a task',
        output_macro='MODEL_DIR',
        is_resumed=True,
        may_change=_OF_TRAININGS,
    ),
    'distill': Job(
        'speculative_t5x.jobs.distill',
        'distill',
        'configs/runs/distill.gin',
        "trains a draft model on its target's distributions",
        output_macro='MODEL_DIR',
        is_resumed=True,
        may_change=_OF_TRAININGS,
        optional=_CONFIGS,
    ),
    'check-pair': Job(
        'speculative_t5x.jobs.check_pair',
        'check_pair',
        'configs/runs/check_pair.gin',
        'checks whether two checkpoints can be used as a pair',
        output_macro='CHECK_OUTPUT_DIR',
        is_complete=True,
        on_host=True,
    ),
    'tpu-preflight': Job(
        'speculative_t5x.jobs.tpu_preflight',
        'tpu_preflight',
        'configs/runs/tpu_preflight.gin',
        'compiles T5 1.1 for a TPU without one, and analyses it',
        flags=('target', 'draft', 'topology'),
        is_complete=True,
        on_host=True,
    ),
    'make-table': Job(
        'speculative_t5x.jobs.make_table',
        'make_table',
        'configs/runs/ngram_table.gin',
        'counts tokens, for n-gram drafters and short draft vocabularies',
        is_complete=True,
        on_host=True,
    ),
    'convert': Job(
        'speculative_t5x.jobs.convert',
        'convert',
        'configs/runs/convert.gin',
        "converts a checkpoint to T5X's current layout",
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
  --gin_file=FILE              a gin file; may be repeated, and later files
                               override earlier ones
  --gin.NAME=VALUE             a single setting; overrides all files
  --output_dir=DIR             the folder for the results
  --gin_search_paths=DIR,...   folders to search for gin files, before the
                               current folder and the package's configs

examples:
  speculative-t5x eval --gin_file=configs/runs/demo.gin
  speculative-t5x paper table1 figure2 --output_dir=/path/to/folder
  speculative-t5x check-pair --gin.CHECKPOINT_PATH=/path/to/target \\
      --gin.DRAFT_CHECKPOINT_PATH=/path/to/draft

For the required and the common settings of a command, see
speculative-t5x COMMAND --help"""


def overview() -> str:
  """Returns the text of `speculative-t5x --help`."""
  lines = [f'  {name:15}{job.summary}' for name, job in JOBS.items()]
  return _OVERVIEW.format(usage=USAGE, commands='\n'.join(lines))
