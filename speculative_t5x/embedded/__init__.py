# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two trained pairs that come with the package.

  translation      bulletins, English to German
  summarization    German reports to summaries of one or two sentences

`MODEL_CARD.md` beside this file says how they were made and what they are
worth.
"""

from collections.abc import Mapping
import dataclasses
import pathlib
from typing import Unpack

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


@dataclasses.dataclass(frozen=True)
class _Pair:
  """A pair of models.

  Attributes:
    target: Name of the target's folder.
    draft: Name of the draft model's folder.
    lengths: Most tokens per input and per output, as options of a decoder.
  """

  target: str
  draft: str
  lengths: Mapping[str, int]


_PAIRS = {
    'translation': _Pair(
        'target', 'draft', {'inputs_length': 96, 'max_tokens': 96}
    ),
    'summarization': _Pair(
        'summary_target',
        'summary_draft',
        {'inputs_length': 160, 'max_tokens': 64},
    ),
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
  return str(_FOLDER / _pair(task).target)


def draft_checkpoint(task: str = 'translation') -> str:
  """Return the folder of a draft model; see `target_checkpoint`."""
  return str(_FOLDER / _pair(task).draft)


@keywords.named(options_lib.Options)
def load_decoder(
    task: str = 'translation',
    *,
    dtype: str | None = None,
    mesh: jax.sharding.Mesh | None = None,
    **options: Unpack[options_lib.ByName],
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
  pair = _pair(task)
  return text_decoder.load(
      target_checkpoint(task),
      draft_checkpoint(task),
      vocabulary=VOCABULARY_FILE,
      dtype=dtype,
      mesh=mesh,
      **{**pair.lengths, **options},
  )


def _pair(task: str) -> _Pair:
  if task not in _PAIRS:
    raise ValueError(f'task must be one of {TASKS}. Got {task!r}.')
  return _PAIRS[task]
