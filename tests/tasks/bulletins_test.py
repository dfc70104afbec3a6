# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the embedded corpora, and of the tasks made of them."""

import gzip
import hashlib
import pathlib
import subprocess
import sys

import editdistance
import pytest
import sentencepiece
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import paraphrases
from speculative_t5x.tasks import post_editing


@pytest.fixture(scope='module')
def vocabulary():
  return sentencepiece.SentencePieceProcessor(
      model_file=bulletins.VOCABULARY_FILE
  )


class TestFiles:

  def test_texts_are_the_released_ones(self):
    """Their hashes, which pin what their card says of them."""
    folder = pathlib.Path(bulletins.VOCABULARY_FILE).parent
    sums = dict(
        reversed(line.split())
        for line in (folder / 'SHA256SUMS').read_text().splitlines()
    )
    assert len(sums) == 8
    for name, expected in sums.items():
      data = (
          gzip.decompress((folder / f'{name}.gz').read_bytes())
          if name.endswith('.tsv')
          else (folder / name).read_bytes()
      )
      assert hashlib.sha256(data).hexdigest() == expected, name

  def test_sizes(self):
    pairs = {'train': 80_000, 'validation': 500, 'test': 500}
    for split, size in pairs.items():
      assert len(bulletins.read_pairs(split)) == size
    assert len(bulletins.read_reports('train')) == 16_000
    first = bulletins.read_paraphrases()[0]
    assert len(first.first) == len(first.second) == 2

  @pytest.mark.parametrize(
      'read', [bulletins.read_pairs, bulletins.read_reports]
  )
  def test_no_input_is_blank_or_there_twice(self, read):
    """Nothing that is decoded or measured on was trained on."""
    splits = map(read, ('train', 'validation', 'test'))
    pairs = [pair for split in splits for pair in split]
    assert len({first for first, _ in pairs}) == len(pairs)
    assert all(text == text.strip() != '' for pair in pairs for text in pair)

  def test_reads_without_tensorflow(self):
    code = (
        'import sys; from speculative_t5x.tasks import bulletins, multi30k;'
        'bulletins.read_pairs("test");'
        'assert not {"tensorflow", "seqio"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


class TestTasks:

  @pytest.mark.parametrize(
      ('name', 'read', 'lengths'),
      [
          ('bulletins_ende', bulletins.read_pairs, (96, 96)),
          ('bulletins_summary', bulletins.read_reports, (160, 64)),
      ],
  )
  def test_examples(self, name, read, lengths, vocabulary):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import bulletin_summaries  # noqa: F401
    from speculative_t5x.tasks import ende  # noqa: F401

    sides = 'inputs', 'targets'
    dataset = seqio.get_mixture_or_task(name).get_dataset(
        dict(zip(sides, lengths)), 'test', shuffle=False
    )
    examples = list(dataset.as_numpy_iterator())
    pairs = read('test')
    assert [e['example_id'] for e in examples] == list(range(len(pairs)))
    for example, pair in zip(examples, pairs, strict=True):
      for side, text in zip(sides, pair, strict=True):
        assert example[f'{side}_pretokenized'].decode() == text
        assert example[side].tolist() == [*vocabulary.encode(text), 1]


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


@pytest.fixture(scope='module', params=post_editing.PERCENTAGES)
def percentage(request):
  return request.param


@pytest.fixture(scope='module')
def columns(percentage):
  return post_editing.read(percentage, 'validation')


def _pairs(columns):
  """Return the words of each hint and of its reference."""
  for (hint,), target in zip(columns['hints'], columns['targets'], strict=True):
    yield hint.split(), target.split()


class TestColumns:

  def test_share_of_edited_words(self, columns, percentage):
    pairs = list(_pairs(columns))
    edits = [editdistance.eval(*pair) for pair in pairs]
    words = [len(target) for _, target in pairs]
    assert edits == [round(percentage / 100 * n) for n in words]
    assert sum(edits) / sum(words) == pytest.approx(percentage / 100, abs=0.005)
    # Words are dropped and inserted, too.
    added = [len(hint) - len(target) for hint, target in pairs]
    assert min(added) < 0 < max(added)

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
    source, _ = bulletins.read_pairs('test')[0]
    assert example['inputs_pretokenized'].decode() == source
    (hint,) = example['hints']
    expected = post_editing.read(percentage, 'test')['hints'][0]
    assert [hint.decode()] == expected
    assert set(task.splits) == {'validation', 'test'}
