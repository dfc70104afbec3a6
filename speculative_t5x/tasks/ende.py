# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers translation tasks of the embedded corpus, from English to German.

Inputs have no prefix. None of the texts of the last two is in the splits of the
first.

  bulletins_ende          the bulletins
  bulletins_paraphrases   Example i of the split `second` states the facts of
                          example i of the split `first` in another sentence
                          pattern: answers to the first ones may serve as hints
                          for the second ones.
  bulletins_unrelated     The split `first` has the texts of every other topic
                          of these, and `second` those of the other topics:
                          answers to the first ones are of no use.
"""

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks

BULLETINS = 'bulletins_ende'
PARAPHRASES = 'bulletins_paraphrases'
UNRELATED = 'bulletins_unrelated'
SIDES = ('first', 'second')  # splits of the last two


def read_side(side: str) -> list[tuple[str, str]]:
  return [getattr(each, side) for each in bulletins.read_paraphrases()]


def read_unrelated(side: str) -> list[tuple[str, str]]:
  """Return the pairs of the topics of a split."""
  pairs = bulletins.read_paraphrases()
  topics = sorted({each.topic for each in pairs})[SIDES.index(side) :: 2]
  return [getattr(each, side) for each in pairs if each.topic in topics]


for _name, _read, _splits in (
    (BULLETINS, bulletins.read_pairs, bulletins.SPLITS),
    (PARAPHRASES, read_side, SIDES),
    (UNRELATED, read_unrelated, SIDES),
):
  seqio_tasks.add_task(
      _name,
      seqio_tasks.source_of_pairs(_read, _splits),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
