# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Earlier versions of texts, made by a stated number of word edits."""

from collections.abc import Sequence
import random


def earlier_version(
    text: str,
    share: float,
    seed: int,
    words: Sequence[str],
    longest_phrase: int = 3,
) -> str:
  """Returns a text that differs from another one in a share of its words.

  The edits are phrases of neighbouring words, each replaced by as many other
  words, dropped, or preceded by as many new words. The number of edited words
  is that of the text times `share`, rounded; it is the least number of words
  to replace, drop and insert that turns one text into the other.

  Args:
    text: of words that are separated by spaces.
    share: of the words to edit, in [0, 1].
    seed: the same seed gives the same edits.
    words: new words are drawn from them; at least two different ones.
    longest_phrase: most words per phrase, at least 1.
  """
  rng = random.Random(seed)
  found = text.split()
  count = round(share * len(found))
  # Two edits may amount to fewer: a word dropped beside the same one inserted.
  while (
      num_edits(
          edited := _edited(found, count, rng, words, longest_phrase), found
      )
      != count
  ):
    pass
  return ' '.join(edited)


def num_edits(first: Sequence[str], second: Sequence[str]) -> int:
  """Returns the least number of words to replace, drop and insert.

  Args:
    first: words.
    second: words that the edits turn `first` into.
  """
  row = list(range(len(second) + 1))
  for i, one in enumerate(first, start=1):
    diagonal, row[0] = row[0], i
    for j, other in enumerate(second, start=1):
      diagonal, row[j] = row[j], min(
          diagonal + (one != other), row[j] + 1, row[j - 1] + 1
      )
  return row[-1]


def _edited(found, count, rng, words, longest_phrase) -> list[str]:
  """Edits phrases of `count` words in all, at random places."""
  lengths = []
  while (left := count - sum(lengths)) > 0:
    lengths.append(min(left, rng.randint(1, longest_phrase)))
  # None stands for a word that is not edited.
  units = [*lengths, *[None] * (len(found) - count)]
  rng.shuffle(units)
  edited, rest = [], iter(found)
  for length in units:
    phrase = [next(rest) for _ in range(length or 1)]
    edited += phrase if length is None else _edit(phrase, rng, words)
  return edited


def _edit(phrase, rng, words) -> list[str]:
  new = [rng.choice(words) for _ in phrase]
  return rng.choice((new, [], new + phrase))
