# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of earlier versions of texts, and of the tasks that give them."""

import pytest
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import post_editing


@pytest.fixture(scope='module', params=post_editing.PERCENTAGES)
def percentage(request):
  return request.param


@pytest.fixture(scope='module')
def columns(percentage):
  return post_editing.read(percentage, 'validation')


def _pairs(columns):
  """Returns the words of each hint and of its reference."""
  for (hint,), target in zip(columns['hints'], columns['targets'], strict=True):
    yield hint.split(), target.split()


class TestNumEdits:

  @pytest.mark.parametrize(
      'first, second, expected',
      [
          ('', 'a b', 2),
          ('a b c', 'a b c', 0),
          ('a b c', 'a x c', 1),
          ('a b c', 'a c', 1),
          ('a b c d', 'b c d e', 2),
          ('a b', 'b a', 2),
      ],
  )
  def test_known_distances(self, first, second, expected):
    first, second = first.split(), second.split()
    assert post_editing.num_edits(first, second) == expected
    assert post_editing.num_edits(second, first) == expected


class TestColumns:

  def test_share_of_edited_words(self, columns, percentage):
    pairs = list(_pairs(columns))
    edits = [post_editing.num_edits(*pair) for pair in pairs]
    words = [len(target) for _, target in pairs]
    assert edits == [round(percentage / 100 * n) for n in words]
    assert sum(edits) / sum(words) == pytest.approx(percentage / 100, abs=0.005)

  def test_words_are_those_of_the_split(self, columns):
    known = {word for t in columns['targets'] for word in t.split()}
    assert all(known.issuperset(hint) for hint, _ in _pairs(columns))

  def test_pairs_are_those_of_the_bulletins(self, columns):
    pairs = list(zip(columns['inputs'], columns['targets'], strict=True))
    assert pairs == bulletins.read_pairs('validation')


class TestTask:

  def test_example(self, percentage):
    task = seqio.get_mixture_or_task(post_editing.name(percentage))
    dataset = task.get_dataset(
        {'inputs': 96, 'targets': 96}, 'test', shuffle=False
    )
    example = next(dataset.as_numpy_iterator())
    source, target = bulletins.read_pairs('test')[0]
    assert example['inputs_pretokenized'].decode() == source
    assert example['targets_pretokenized'].decode() == target
    assert example['example_id'] == 0
    (hint,) = example['hints']
    expected = post_editing.read(percentage, 'test')['hints'][0]
    assert [hint.decode()] == expected
    assert set(task.splits) == {'validation', 'test'}
