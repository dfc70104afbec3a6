# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers `bulletins_paraphrases`, bulletins that state the same facts twice.

Example i of the split `second` states the facts of example i of the split
`first` in another sentence pattern, so that answers to the first ones may serve
as hints for the second ones. Neither is in the splits of `bulletins_ende`.
"""

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks

PARAPHRASES = 'bulletins_paraphrases'
SPLITS = ('first', 'second')


def read_pairs(split: str) -> list[tuple[str, str]]:
  """Returns the pairs of an English and a German text of one of SPLITS."""
  return [getattr(each, split) for each in bulletins.read_paraphrases()]


seqio_tasks.add_task(
    PARAPHRASES,
    seqio_tasks.source_of_pairs(read_pairs, SPLITS),
    metric_fns=metric_fns.TRANSLATION,
    vocabulary_file=bulletins.VOCABULARY_FILE,
)
