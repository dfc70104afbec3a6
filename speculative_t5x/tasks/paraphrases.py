# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of inputs that resemble earlier ones, and of inputs that do not.

Example i of the split `second` of `bulletins_paraphrases` states the facts of
example i of the split `first` in another sentence pattern, so that answers to
the first ones may serve as hints for the second ones. In `bulletins_unrelated`
the split `first` has those of every other topic, and `second` those of the
other topics, so that answers to the first ones are of no use. None of these
texts is in the splits of `bulletins_ende`.
"""

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks

PARAPHRASES = 'bulletins_paraphrases'
UNRELATED = 'bulletins_unrelated'
SPLITS = ('first', 'second')


def read_pairs(split: str) -> list[tuple[str, str]]:
  return [getattr(each, split) for each in bulletins.read_paraphrases()]


def read_unrelated_pairs(split: str) -> list[tuple[str, str]]:
  """Return the pairs of the topics of a split."""
  read = bulletins.read_paraphrases()
  topics = sorted({each.topic for each in read})[SPLITS.index(split) :: 2]
  return [getattr(each, split) for each in read if each.topic in topics]


for _name, _read in (
    (PARAPHRASES, read_pairs),
    (UNRELATED, read_unrelated_pairs),
):
  seqio_tasks.add_task(
      _name,
      seqio_tasks.source_of_pairs(_read, SPLITS),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
