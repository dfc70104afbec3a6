# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of earlier versions of texts, and of the tasks that give them."""

import editdistance
import pytest
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import post_editing

_TEXT = 'one two three four five six seven eight nine ten'


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


class TestEarlierVersion:

  @pytest.mark.parametrize('share', [0.0, 0.3, 1.0])
  def test_share_is_exact(self, share):
    lengths = set()
    for seed in range(30):
      edited = post_editing.earlier_version(_TEXT, share, seed, ['a', 'b'])
      found = editdistance.eval(edited.split(), _TEXT.split())
      assert found == round(10 * share)
      lengths.add(len(edited.split()))
    # Words are dropped and inserted, too.
    assert min(lengths) < 10 < max(lengths) if share else lengths == {10}


class TestColumns:

  def test_share_of_edited_words(self, columns, percentage):
    pairs = list(_pairs(columns))
    edits = [editdistance.eval(*pair) for pair in pairs]
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
