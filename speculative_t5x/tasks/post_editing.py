# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers tasks of translating bulletins, given an earlier translation.

`bulletins_post_editing_30` is `bulletins_ende` with one more feature: `hints`,
[1] string, is the reference with 30 percent of its words edited; likewise `_10`
and `_50`. It stands for the translation of an earlier version of the input, or
for another translator's draft. Hints are of no use in training, so there is no
training split.

On the validation split the embedded target writes the references almost word
by word, so that the share of edited words also holds between hint and output.
On the test split it departs from the references, and hints are worth less.
"""

from collections.abc import Mapping, Sequence
import functools
import random

import editdistance

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import text_files

PERCENTAGES = (10, 30, 50)  # of edited words
SPLITS = ('validation', 'test')


def name(percentage: int) -> str:
  """Return the name of the task with that share of edited words."""
  return f'bulletins_post_editing_{percentage}'


def read(percentage: int, split: str) -> Mapping[str, list]:
  """Return the texts of one of SPLITS by feature."""
  inputs, targets = zip(*bulletins.read_pairs(split), strict=True)
  words = [word for target in targets for word in target.split()]
  hints = [
      earlier_version(target, percentage / 100, example_id, words)
      for example_id, target in enumerate(targets)
  ]
  return {
      'inputs': list(inputs),
      'targets': list(targets),
      text_files.HINTS: [[hint] for hint in hints],
  }


def earlier_version(
    text: str, share: float, seed: int, words: Sequence[str]
) -> str:
  """Return a text that differs from another one in a share of its words.

  An edited word is replaced by another one, dropped, or preceded by a new one,
  of `words`. So many edits, rounded, and no fewer turn one text into the other.
  The same seed gives the same edits.
  """
  rng = random.Random(seed)
  found = text.split()
  count = round(share * len(found))
  edited = _edited(found, count, rng, words)
  # Two edits may amount to fewer: a word dropped beside the same one inserted.
  while editdistance.eval(edited, found) != count:
    edited = _edited(found, count, rng, words)
  return ' '.join(edited)


def _edited(found, count, rng, words) -> list[str]:
  """Edit that many words; the result may be fewer edits away."""
  chosen = set(rng.sample(range(len(found)), count))
  edited = []
  for place, word in enumerate(found):
    new = rng.choice(words)
    options = ([new], [], [new, word])
    edited += rng.choice(options) if place in chosen else [word]
  return edited


for each in PERCENTAGES:
  seqio_tasks.add_task(
      name(each),
      seqio_tasks.source_of_columns(functools.partial(read, each), SPLITS),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
