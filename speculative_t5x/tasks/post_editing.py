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

from collections.abc import Mapping
import functools

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import text_files
from speculative_t5x.tasks import word_edits

PERCENTAGES = (10, 30, 50)  # of edited words
SPLITS = ('validation', 'test')


def name(percentage: int) -> str:
  """Returns the name of the task with that share of edited words."""
  return f'bulletins_post_editing_{percentage}'


def read(percentage: int, split: str) -> Mapping[str, list]:
  """Returns the texts of a split by feature.

  Args:
    percentage: of the words of the reference that its hint edits.
    split: one of SPLITS.
  """
  inputs, targets = zip(*bulletins.read_pairs(split), strict=True)
  words = [word for target in targets for word in target.split()]
  hints = [
      word_edits.earlier_version(target, percentage / 100, example_id, words)
      for example_id, target in enumerate(targets)
  ]
  return {
      'inputs': list(inputs),
      'targets': list(targets),
      text_files.HINTS: [[hint] for hint in hints],
  }


for each in PERCENTAGES:
  seqio_tasks.add_task(
      name(each),
      seqio_tasks.source_of_columns(functools.partial(read, each), SPLITS),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
