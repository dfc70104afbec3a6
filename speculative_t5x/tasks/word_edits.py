# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Earlier versions of texts, made by a stated number of word edits."""

from collections.abc import Sequence
import random


def earlier_version(
    text: str, share: float, seed: int, words: Sequence[str]
) -> str:
  """Returns a text that differs from another one in a share of its words.

  An edited word is replaced by another one, dropped, or preceded by a new one;
  where that happens is drawn, and which of the three. The number of edits is
  that of the words times `share`, rounded, and no fewer edits turn one text
  into the other.

  Args:
    text: of words that are separated by spaces.
    share: of the words to edit, in [0, 1].
    seed: the same seed gives the same edits.
    words: new words are drawn from them; at least two different ones.
  """
  rng = random.Random(seed)
  found = text.split()
  count = round(share * len(found))
  edited = _edited(found, count, rng, words)
  # Two edits may amount to fewer: a word dropped beside the same one inserted.
  while num_edits(edited, found) != count:
    edited = _edited(found, count, rng, words)
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


def _edited(found, count, rng, words) -> list[str]:
  """Edits that many words; the result may be fewer edits away."""
  chosen = set(rng.sample(range(len(found)), count))
  edited = []
  for place, word in enumerate(found):
    new = rng.choice(words)
    options = ([new], [], [new, word])
    edited += rng.choice(options) if place in chosen else [word]
  return edited
