# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the embedded corpora are the released ones, and are read."""

import gzip
import hashlib
import pathlib
import subprocess
import sys

import pytest
import sentencepiece

from speculative_t5x.tasks import bulletins


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
