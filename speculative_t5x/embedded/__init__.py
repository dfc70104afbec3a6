# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two trained pairs that come with the package.

  translation      bulletins, English to German
  summarization    German reports to summaries of one or two sentences

`MODEL_CARD.md` beside this file says how they were made and what they are
worth.
"""

import dataclasses
import pathlib

from speculative_t5x.decoder import text_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.tasks import bulletins

_FOLDER = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class _Pair:
  """A pair of models.

  Attributes:
    target: name of the target's folder.
    draft: name of the draft model's folder.
    inputs_length: most tokens per input, the end of sequence included.
    targets_length: likewise, per output.
  """

  target: str
  draft: str
  inputs_length: int
  targets_length: int


_PAIRS = {
    'translation': _Pair('target', 'draft', 96, 96),
    'summarization': _Pair('summary_target', 'summary_draft', 160, 64),
}
TASKS = tuple(_PAIRS)


def target_checkpoint(task: str = 'translation') -> str:
  """Returns the folder of a target's checkpoint.

  Args:
    task: one of TASKS.
  Raises:
    ValueError: for another task.
  """
  return str(_FOLDER / _pair(task).target)


def draft_checkpoint(task: str = 'translation') -> str:
  """Returns the folder of a draft model; see `target_checkpoint`."""
  return str(_FOLDER / _pair(task).draft)


def load_decoder(
    gamma: int = 5, task: str = 'translation', **options
) -> text_decoder.TextDecoder:
  """Loads target and draft model, ready to decode texts of their task.

  Args:
    gamma: draft tokens per block, at least 1.
    task: one of TASKS.
    **options: of `text_decoder.TextDecoder`.
  Raises:
    ValueError: for another task.
  """
  pair = _pair(task)
  lengths = {
      'inputs_length': pair.inputs_length,
      'targets_length': pair.targets_length,
  }
  draft = models.load_model(draft_checkpoint(task))
  return text_decoder.TextDecoder(
      models.load_model(target_checkpoint(task)),
      draft_model_source.from_model(draft),
      vocabularies.load(bulletins.VOCABULARY_FILE),
      gamma=gamma,
      **(lengths | options),
  )


def _pair(task: str) -> _Pair:
  if task not in _PAIRS:
    raise ValueError(f'task must be one of {TASKS}. Got {task!r}.')
  return _PAIRS[task]
