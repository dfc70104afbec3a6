# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two trained pairs that come with the package.

  translation      bulletins, English to German
  summarization    German reports to summaries of one or two sentences

`MODEL_CARD.md` beside this file says how they were made and what they are
worth.
"""

import pathlib
from typing import Any

import jax

from speculative_t5x.decoder import keywords
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.tasks import bulletins

__all__ = [
    'TASKS',
    'VOCABULARY_FILE',
    'draft_checkpoint',
    'load_decoder',
    'target_checkpoint',
]

_FOLDER = pathlib.Path(__file__).parent


def __dir__() -> list[str]:
  return __all__


# Folders of target and draft model, most tokens per input and per output.
_PAIRS = {
    'translation': ('target', 'draft', 96, 96),
    'summarization': ('summary_target', 'summary_draft', 160, 64),
}
TASKS = tuple(_PAIRS)
VOCABULARY_FILE = bulletins.VOCABULARY_FILE  # of all of them


def vocabulary_file() -> str:
  """Return the path of their SentencePiece model, for gin files."""
  return VOCABULARY_FILE


def target_checkpoint(task: str = 'translation') -> str:
  """Return the folder of a target's checkpoint.

  Args:
    task: One of `TASKS`.
  Raises:
    ValueError: for another task.
  """
  return str(_FOLDER / _pair(task)[0])


def draft_checkpoint(task: str = 'translation') -> str:
  """Return the folder of a draft model; see `target_checkpoint`."""
  return str(_FOLDER / _pair(task)[1])


@keywords.named(options_lib.Options)
def load_decoder(
    task: str = 'translation',
    *,
    dtype: str | None = None,
    mesh: jax.sharding.Mesh | None = None,
    **options: Any,
) -> text_decoder.TextDecoder:
  """Load target and draft model, ready to decode texts of their task.

  Args:
    task: One of `TASKS`.
    dtype: See `text_decoder.load`.
    mesh: Likewise.
    **options: Options by name, such as `gamma=3`. The lengths are those of the
      task unless they are given.
  Raises:
    ValueError: for another task.
  """
  *_, inputs_length, max_tokens = _pair(task)
  lengths = {'inputs_length': inputs_length, 'max_tokens': max_tokens}
  return text_decoder.load(
      target_checkpoint(task),
      draft_checkpoint(task),
      vocabulary=VOCABULARY_FILE,
      dtype=dtype,
      mesh=mesh,
      **(lengths | options),
  )


def _pair(task: str) -> tuple[str, str, int, int]:
  if task not in _PAIRS:
    raise ValueError(f'task must be one of {TASKS}. Got {task!r}.')
  return _PAIRS[task]
