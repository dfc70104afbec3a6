# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tasks that earlier answers are measured with."""

import pytest

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import paraphrases

_LENGTHS = {'inputs': 96, 'targets': 96}


def _topics(pairs):
  known = {
      pair: each.topic
      for each in bulletins.read_paraphrases()
      for pair in (each.first, each.second)
  }
  return {known[pair] for pair in pairs}


def test_splits_of_unrelated_texts_share_no_topic():
  first, second = map(paraphrases.read_unrelated_pairs, paraphrases.SPLITS)
  assert len(first) + len(second) == 200 and min(len(first), len(second)) > 90
  assert not set(first) & set(second)
  topics = _topics(first), _topics(second)
  assert not topics[0] & topics[1]
  assert len(topics[0]) == len(topics[1]) == 6


def test_unrelated_texts_are_paraphrases():
  for split in paraphrases.SPLITS:
    known = paraphrases.read_pairs(split)
    found = paraphrases.read_unrelated_pairs(split)
    assert found == [pair for pair in known if pair in found]


@pytest.mark.parametrize(
    ('task', 'read'),
    [
        (paraphrases.PARAPHRASES, paraphrases.read_pairs),
        (paraphrases.UNRELATED, paraphrases.read_unrelated_pairs),
    ],
)
@pytest.mark.parametrize('split', paraphrases.SPLITS)
def test_examples_are_those_of_the_split(task, read, split):
  found = [each.text for each in examples.stream(task, split, _LENGTHS)]
  assert found == [source for source, _ in read(split)]
