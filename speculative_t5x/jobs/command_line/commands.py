# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands of `speculative-t5x`: one table of jobs."""

import dataclasses
import pathlib

_PACKAGE = pathlib.Path(__file__).parents[2]
# Gin's constant for a macro that must be set.
REQUIRED = '%gin.REQUIRED'
# The folders that can hold `configs`: of a clone and of a wheel.
ROOTS = str(_PACKAGE.parent), str(_PACKAGE)


class UsageError(ValueError):
  """The command line, or a gin file that it names, is not valid."""


@dataclasses.dataclass(frozen=True)
class Job:
  """The job that a command runs."""

  function: str  # module in `jobs`, and function in it
  # Gin file that is read before all others, and whose head comment is the
  # command's help.
  gin_file: str
  summary: str = ''  # one-line description of the job
  # Macro that --output_dir sets; None for a job without a folder.
  output_macro: str | None = 'OUTPUT_DIR'
  # Names of further flags; each sets the macro of the same name in upper case.
  flags: tuple[str, ...] = ()
  # Whether the job runs on the host, without an accelerator.
  on_host: bool = False
  # Macros that a resumed job may change, if its output folder does not state
  # its settings otherwise; None for other jobs.
  may_change: tuple[str, ...] | None = None
  # Macros that are None where no gin file sets them.
  optional: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class CommandLine:
  """A command with its flags."""

  job: Job
  gin_files: tuple[str, ...]  # in the order in which they are read
  folders: tuple[str, ...]  # in which they are searched, in order
  # Names of macros or arguments and their values in gin's syntax, which
  # override those of the files.
  bindings: tuple[tuple[str, str], ...]


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
    'CLUSTER': 'configs/engines',
}
# They change neither what is trained nor on what; NUM_PARTS draws other dropout
# masks, and TRAIN_STEPS moves the decay of the learning rate. What the target
# of a distillation holds is kept with its data.
_OF_TRAININGS = (
    'MODEL_DIR', 'CHECKPOINT_PATH', 'DECODES_DIR', 'TRAIN_STEPS',
    'CHECKPOINT_PERIOD', 'KEEP', 'PATIENCE', 'NUM_PARTS', 'MESH_SHAPE',
)  # fmt: skip
# A checkpoint states the sizes of its network itself.
_CONFIGS = 'TARGET_CONFIG', 'DRAFT_CONFIG'
JOBS = {
    'eval': Job(
        'evaluation.evaluate',
        'configs/runs/eval.gin',
        'decodes a task plainly and speculatively, and compares the two',
        output_macro='EVAL_OUTPUT_DIR',
        optional=_CONFIGS,
    ),
    'infer': Job(
        'infer.infer',
        'configs/runs/infer.gin',
        'decodes lines of text, or the inputs of a task',
        output_macro='INFER_OUTPUT_DIR',
        optional=(*_CONFIGS, 'DRAFTER'),
    ),
    'serve': Job(
        'serve.serve',
        'configs/runs/serve.gin',
        "serves completions over HTTP, as OpenAI's clients ask for them",
        output_macro=None,
        optional=(*_CONFIGS, 'DRAFTER'),
    ),
    'compare': Job(
        'compare.compare',
        'configs/runs/compare.gin',
        'compares two runs of eval or infer: identical up to rounding?',
        output_macro='COMPARE_OUTPUT_DIR',
        flags=('first', 'second'),
        optional=_CONFIGS,
    ),
    'walltime': Job(
        'walltime.measure_walltime',
        'configs/runs/walltime.gin',
        'measures the speedup on a task, and what explains it',
        optional=_CONFIGS,
    ),
    'methods': Job(
        'methods.measure_methods',
        'configs/runs/methods.gin',
        'compares drafters, rules and policies on several tasks',
    ),
    'simulate': Job(
        'simulate.simulate',
        'configs/runs/simulate.gin',
        'measures T5 1.1 with random weights and simulated acceptance',
    ),
    'paper': Job(
        'paper',
        'configs/paper/paper.gin',
        "makes the paper's tables and figures, all or the named ones",
    ),
    'train': Job(
        'train.train',
        'configs/runs/train.gin',
        'trains a target or a draft model on a task',
        output_macro='MODEL_DIR',
        may_change=_OF_TRAININGS,
    ),
    'distill': Job(
        'distill.distill',
        'configs/runs/distill.gin',
        "trains a draft model on its target's distributions",
        output_macro='MODEL_DIR',
        may_change=_OF_TRAININGS,
        optional=_CONFIGS,
    ),
    'check-pair': Job(
        'check_pair.check_pair',
        'configs/runs/check_pair.gin',
        'finds a pair and places it on this machine; reads no weights',
        output_macro=None,
        optional=_CONFIGS,
    ),
    'preflight': Job(
        'preflight.preflight',
        'configs/runs/preflight.gin',
        'compiles T5 1.1 for a TPU or GPU without one, and analyses it',
        flags=('target', 'draft', 'topology'),
        on_host=True,
    ),
    'make-table': Job(
        'make_table.make_table',
        'configs/runs/ngram_table.gin',
        'counts tokens, for n-gram drafters and short draft vocabularies',
        on_host=True,
    ),
    'convert': Job(
        'convert.convert',
        'configs/runs/convert.gin',
        "converts a checkpoint to T5X's current layout",
        on_host=True,
    ),
}
# Parts of `paper` in order: figures show what tables measure.
PARTS = {
    name: Job(f'paper.{name}', f'configs/paper/{name}.gin', optional=_CONFIGS)
    for name in (
        'table1', 'table2', 'table3', 'table5', 'figure1', 'figure2', 'figure3',
        'figure4', 'figure5',
    )
}  # fmt: skip
# It runs before the tables of pairs, with their names as the macro TABLES.
PAIRS = Job('task_pairs.measure', 'configs/paper/pairs.gin', optional=_CONFIGS)
TABLES_OF_PAIRS = 'table2', 'table3', 'table5'
USAGE = """\
speculative-t5x COMMAND [--gin_file=FILE...] [--gin.NAME=VALUE...]
                       [--gin_search_paths=DIR,...] [--output_dir=DIR]"""


def files(folder: str) -> list[pathlib.Path]:
  """Return the gin files of a folder of choices, by their names."""
  found = [x for y in ROOTS for x in pathlib.Path(y, folder).glob('*.gin')]
  return sorted(found, key=lambda path: path.name)
