# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Hints: texts supplied with an input that its output may repeat.

An earlier version of the output, a previous translation, a template. Drafters
that read hints make drafts of them.

Legend: examples, width (of the hints of a batch).
"""

from collections.abc import Sequence

import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.loading import vocabularies
from speculative_t5x.speculation import contracts

# The hints of one input: a text, several in order of preference, or none.
Hints = str | Sequence[str] | None

_MIN_WIDTH = 32  # to search fewer positions takes as long


def encode(
    hints: Hints,
    vocabulary: vocabularies.Vocabulary,
    limit: int | None = None,
) -> list[list[int]]:
  """Return the token ids of one input's hints, without empty ones.

  Each ends with the end of sequence, so that a draft may end the output, unless
  it was cut. All together are cut to the limit, if there is one, which counts a
  token between two of them.

  Raises:
    TypeError: for anything else than texts.
  """
  texts = [] if hints is None else [hints] if isinstance(hints, str) else hints
  is_text = lambda x: isinstance(x, str)
  if not isinstance(texts, Sequence) or not all(map(is_text, texts)):
    raise TypeError(
        f'Hints are a text, a list of texts, or None; got {hints!r}.'
    )
  for text in texts:
    check_unicode('A hint', text)
  encoded = []
  room = limit
  if vocabulary.adds_space:  # the space of an output that continues its input
    texts = [text.removeprefix(' ') for text in texts]
  for ids in filter(None, map(vocabulary.encode, texts)):
    ids = [*ids, vocabulary.eos_id]
    if room is not None:
      ids = ids[: max(room, 0)]
      room -= len(ids) + 1
    if ids:
      encoded.append(ids)
  return encoded


def stack(
    encoded: Sequence[Sequence[Sequence[int]]], room: int = 0
) -> np.ndarray | None:
  """Return the hints of a batch as `views.Context` has them.

  A new width compiles again. Widths are therefore powers of two, of at least
  `room` tokens, so that batches with fewer have one width. The hints of each
  example are those of `encode`.

  Returns:
    [examples, width] int32; None if no example has hints and there is no room.
  """
  rows = []
  for texts in encoded:
    parted = [i for ids in texts for i in (contracts.NO_TOKEN, *ids)]
    rows.append(parted[1:])
  longest = max(map(len, rows), default=0)
  if not (longest or room):
    return None
  return batching.pad(rows, width(max(longest, room)))


def width(length: int) -> int:
  """Return the width of a batch whose longest hints have so many tokens."""
  return batching.power_of_two(max(length, _MIN_WIDTH))


def check_unicode(name: str, text: str) -> None:
  """Raise ValueError for text that has no UTF-8."""
  try:
    text.encode()
  except UnicodeEncodeError as error:
    raise ValueError(
        f'{name} has a lone surrogate, {text[error.start]!a}, at character'
        f' {error.start}: it is not text. Read it with the right encoding, or'
        " replace it by text.encode('utf-8', 'replace').decode()."
    ) from None
