# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists of token ids as rows of arrays, and back."""

from collections.abc import Iterable, Iterator, Sequence
import itertools
from typing import Any

import numpy as np

from speculative_t5x.speculation import contracts

_MIN_WIDTH = 32  # below it, widths save little


def parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
  """Yield lists of `size` items, at least 1; the last list is shorter."""
  remaining = iter(items)
  while part := list(itertools.islice(remaining, size)):
    yield part


def pad(
    rows: Sequence[Sequence[int]],
    length: int,
    filler: int = contracts.NO_TOKEN,
) -> np.ndarray:
  """Stack token sequences, cut to a length and padded to it by a filler.

  Returns:
    [len(rows), length] int32.
  """
  padded = np.full((len(rows), length), filler, np.int32)
  for filled, row in zip(padded, rows, strict=True):
    filled[: len(row)] = row[:length]
  return padded


def text_ids(
    ids: Sequence[int], special_ids: contracts.SpecialIds
) -> list[int]:
  """Return the ids of a row up to the end of sequence, without padding."""
  before_end = itertools.takewhile(lambda i: i not in special_ids.ends, ids)
  return [i for i in before_end if i != special_ids.padding]


def input_width(longest: int, inputs_length: int) -> int:
  """Return the least width of a batch that holds its longest input.

  `inputs_length` is the most that an input may have. Each width compiles once
  more, and runs the encoder at half and a quarter of itself too
  (`input_widths`). Quarters of quarters are therefore enough.
  """
  width = inputs_length
  while width // 4 >= max(longest, _MIN_WIDTH):
    width //= 4
  return width


def power_of_two(count: int) -> int:
  """Return the least power of two that is at least 1 and at least `count`."""
  return 1 << max(count - 1, 0).bit_length()
