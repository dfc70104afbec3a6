# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The recipes, and the jobs that train, score and time a draft.

Each is a process of its own. A job that was interrupted goes on where it was,
and one that is complete does nothing.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
import pathlib
import subprocess
import sys
from typing import Any

from speculative_t5x.research.reports import runs
from speculative_t5x.training import history

_CONFIGS = pathlib.Path(__file__).parents[2] / 'configs'
_GAMMA = 5


BASELINE = 'references'


@dataclasses.dataclass(frozen=True)
class Recipe:
  """Gin files, without their suffix, and macros.

  Attributes:
    run: File of the training, in `configs/runs`.
    gin_files: Files of `configs` that are given after it.
    training_macros: Macros of the training alone.
    drafter: File of the trained draft, in `configs/drafters`.
    macros: Macros of the training and of the drafter.
  """

  run: str = 'distill_multi30k'
  gin_files: tuple[str, ...] = ()
  training_macros: Mapping[str, str] = dataclasses.field(default_factory=dict)
  drafter: str = 'draft_model'
  macros: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def decodes_alone(self) -> bool:
    """Whether the draft is a model with an encoder of its own."""
    return self.drafter == 'draft_model'


def _divergence(name: str, *gin_files: str, **macros: str) -> Recipe:
  return Recipe(
      gin_files=(f'divergences/{name}', *gin_files), training_macros=macros
  )


_REFERENCES = 'training_data/references'
RECIPES = {
    BASELINE: _divergence('cross_entropy', _REFERENCES),
    'decodes': _divergence('cross_entropy'),
    'forward_kl': _divergence('forward_kl'),
    'reverse_kl': _divergence('reverse_kl'),
    'jensen_shannon': _divergence('jensen_shannon'),
    'total_variation': _divergence('total_variation'),
    'forward_kl_on_references': _divergence('forward_kl', _REFERENCES),
    'forward_kl_on_both': _divergence('forward_kl', 'training_data/both'),
    'on_policy': _divergence('forward_kl', ON_POLICY_SHARE='0.5'),
    'shared_encoder': Recipe(
        run='distill_multi30k_shared_encoder', drafter='shared_encoder'
    ),
    'cut': Recipe(run='distill_multi30k_cut', drafter='shared_encoder'),
    'exit_head': Recipe(
        gin_files=('origins/exit_head',),
        drafter='exit_head',
        macros={'EXIT_LAYER': '1'},
    ),
}


@dataclasses.dataclass(frozen=True)
class Draft:
  """A draft of one recipe and seed.

  Attributes:
    recipe: How it is trained.
    seed: Seed of the training.
    folder: Folder of the training; the other jobs write into folders of it.
    decodes: Folder of the target's decodes, shared by all drafts.
    multi30k: Folder of the data.
    target: Checkpoint of the target.
  """

  recipe: Recipe
  seed: int
  folder: pathlib.Path
  decodes: pathlib.Path
  multi30k: pathlib.Path
  target: pathlib.Path

  def training_command(self, options: Sequence[str] = ()) -> list[str]:
    """Return the command of the distill job, with options of all trainings."""
    return self._command(
        'distill',
        (f'runs/{self.recipe.run}', *self.recipe.gin_files),
        {
            'CHECKPOINT_PATH': self.target,
            **self.recipe.macros,
            **self.recipe.training_macros,
            'SEED': self.seed,
            'MODEL_DIR': self.folder,
            'DECODES_DIR': self.decodes,
        },
        options,
    )

  def train(self, options: Sequence[str]) -> history.Point:
    """Train, and return the measures of the best checkpoint."""
    subprocess.run(self.training_command(options), check=True)
    return self.best()

  def best(self) -> history.Point:
    """Return the measures of the best checkpoint."""
    rows = json.loads((self.folder / history.FILE_NAME).read_text())
    return max((history.Point(**row) for row in rows), key=lambda x: x.score)

  def checkpoint(self) -> pathlib.Path:
    """Return the folder of the best checkpoint."""
    return self.folder / f'checkpoint_{self.best().step}'

  def walltime_command(self) -> list[str]:
    """Return the command of the walltime job."""
    return self._command(
        'walltime',
        (
            'runs/walltime',
            'tasks/multi30k_ende',
            f'drafters/{self.recipe.drafter}',
        ),
        {
            'CHECKPOINT_PATH': self.target,
            **self.recipe.macros,
            'DRAFT_CHECKPOINT_PATH': self.checkpoint(),
            'OUTPUT_DIR': self.folder / 'walltime',
            'GAMMA': _GAMMA,
            'NUM_EXAMPLES': 50,
            'ALPHA_TOKENS': 1000,  # the training has measured alpha
        },
    )

  def speed(self) -> list[dict[str, Any]]:
    """Return what the walltime job measures, by temperature."""
    subprocess.run(self.walltime_command(), check=True)
    keys = (
        'temperature', 'gamma', 'speedup', 'speedup_ci95',
        'tokens_per_target_call',
    )  # fmt: skip
    records = runs.read(self.folder / 'walltime' / 'results.jsonl')
    return [{key: getattr(each, key) for key in keys} for each in records]

  def quality_command(self) -> list[str]:
    """Return the command of the eval job that decodes by the draft alone."""
    return self._command(
        'eval',
        ('runs/eval', 'tasks/multi30k_ende', 'drafters/uniform'),
        {
            'CHECKPOINT_PATH': self.checkpoint(),
            'EVAL_OUTPUT_DIR': self.folder / 'quality',
            'BATCH_SIZE': 20,
        },
    )

  def bleu(self) -> float:
    """Return the BLEU of the draft's own greedy text of the validation split.

    The draft must have an encoder.
    """
    subprocess.run(self.quality_command(), check=True)
    (record,) = runs.read(self.folder / 'quality' / 'results.jsonl')
    return record.quality.baseline['bleu']

  def _command(
      self,
      job: str,
      gin_files: Sequence[str],
      macros: Mapping[str, Any],
      options: Sequence[str] = (),
  ) -> list[str]:
    macros = {'MULTI30K_DIR': self.multi30k, **macros}
    return [
        *(sys.executable, '-m', 'speculative_t5x.jobs.command_line.main', job),
        *(f'--gin_file={_CONFIGS / name}.gin' for name in gin_files),
        *options,
        *(f'--gin.{name}={_literal(x)}' for name, x in macros.items()),
    ]


def _literal(value: Any) -> str:
  """Return a value as gin reads it; a path is a string in quotes."""
  return json.dumps(str(value)) if isinstance(value, pathlib.Path) else value
