# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the embedded corpora, and of the tasks made of them."""

import gzip
import hashlib
import pathlib

import editdistance
import pytest
import seqio

from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import bulletin_summaries  # noqa: F401
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import post_editing


class TestFiles:

  def test_texts_are_the_released_ones(self):
    """Their hashes, which pin what their card says of them."""
    folder = pathlib.Path(bulletins.VOCABULARY_FILE).parent
    sums = dict(
        reversed(line.split())
        for line in (folder / 'SHA256SUMS').read_text().splitlines()
    )
    assert len(sums) == 7
    for name, expected in sums.items():
      data = (
          gzip.decompress((folder / f'{name}.gz').read_bytes())
          if name.endswith('.tsv')
          else (folder / name).read_bytes()
      )
      assert hashlib.sha256(data).hexdigest() == expected, name


def _tasks():
  """Yield names of tasks, their splits, and the pairs that these are."""
  yield ende.BULLETINS, 'test', bulletins.read_pairs('test')
  yield 'bulletins_summary', 'test', bulletins.read_reports('test')
  for percentage in post_editing.PERCENTAGES:
    name = post_editing.name(percentage)
    yield name, 'test', bulletins.read_pairs('test')


def test_tasks():
  vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
  sides = 'inputs', 'targets'
  for name, split, pairs in _tasks():
    dataset = seqio.get_mixture_or_task(name).get_dataset(
        {'inputs': 160, 'targets': 96}, split, shuffle=False
    )
    examples = list(dataset.as_numpy_iterator())
    assert [x['example_id'] for x in examples] == list(range(len(pairs)))
    for example, pair in zip(examples, pairs, strict=True):
      for side, text in zip(sides, pair, strict=True):
        assert example[f'{side}_pretokenized'].decode() == text
        assert example[side].tolist() == [*vocabulary.encode(text), 1]


@pytest.mark.parametrize('percentage', post_editing.PERCENTAGES)
def test_post_editing(percentage):
  """The share of edited words is exact, and hints reach the examples."""
  columns = post_editing.read(percentage, 'validation')
  hints = [hint.split() for (hint,) in columns['hints']]
  targets = [target.split() for target in columns['targets']]
  edits = [editdistance.eval(*x) for x in zip(hints, targets, strict=True)]
  words = [*map(len, targets)]
  assert edits == [round(percentage / 100 * n) for n in words]
  assert sum(edits) / sum(words) == pytest.approx(percentage / 100, abs=0.005)
  # Words are dropped and inserted, too.
  added = [len(hint) - len(target) for hint, target in zip(hints, targets)]
  assert min(added) < 0 < max(added)
  task = seqio.get_mixture_or_task(post_editing.name(percentage))
  assert set(task.splits) == {'validation', 'test'}
  lengths = {'inputs': 96, 'targets': 96}
  dataset = task.get_dataset(lengths, 'validation', shuffle=False)
  (hint,) = next(dataset.as_numpy_iterator())['hints']
  assert [hint.decode()] == columns['hints'][0]
