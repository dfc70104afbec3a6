# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the embedded corpora are what their card says, and are read."""

import gzip
import hashlib
import pathlib
import re
import subprocess
import sys

import pytest
import sentencepiece

from speculative_t5x.tasks import bulletins

# Untidy spaces or punctuation, and what is left of a template.
_UNTIDY = re.compile(r'[^\S ]|  | [.,]|[,.][,.]|,[^\d ]|[][{}@^/|+]|^ | $')


@pytest.fixture(scope='module')
def pairs():
  return {split: bulletins.read_pairs(split) for split in bulletins.SPLITS}


@pytest.fixture(scope='module')
def reports():
  return {split: bulletins.read_reports(split) for split in bulletins.SPLITS}


@pytest.fixture(scope='module')
def vocabulary():
  return sentencepiece.SentencePieceProcessor(
      model_file=bulletins.VOCABULARY_FILE
  )


def _words(texts) -> set[str]:
  return {word for text in texts for word in re.findall(r'[^\W\d_]+', text)}


def _check_corpus(corpus, sizes, vocabulary, max_pieces):
  """Checks sizes, distinctness, spelling, and that the vocabulary covers it."""
  assert {split: len(read) for split, read in corpus.items()} == sizes
  for side, longest in enumerate(max_pieces):
    texts = [pair[side] for read in corpus.values() for pair in read]
    assert len(set(texts)) == len(texts)
    for text in texts:
      assert not _UNTIDY.search(text), text
      assert text.endswith('.') and not text[0].islower(), text
    encoded = vocabulary.encode(texts)
    assert max(map(len, encoded)) + 1 <= longest  # the end of sequence too
    assert all(vocabulary.unk_id() not in ids for ids in encoded)
    assert vocabulary.decode(encoded) == texts


class TestBulletins:

  def test_corpus(self, pairs, vocabulary):
    sizes = {'train': 80_000, 'validation': 500, 'test': 500}
    _check_corpus(pairs, sizes, vocabulary, max_pieces=(96, 96))

  def test_both_sides_state_the_same_numbers(self, pairs):
    # Except for times of day, which English counts to twelve.
    clock = re.compile(r'\d+:\d\d( [AP]M)?')
    for read in pairs.values():
      for pair in read:
        english, german = (
            sorted(re.findall(r'\d', clock.sub('', text))) for text in pair
        )
        assert english == german, pair

  @pytest.mark.parametrize('side', [0, 1])
  def test_every_test_word_is_in_training(self, pairs, side):
    known, new = (
        _words(pair[side] for pair in pairs[split])
        for split in ('train', 'test')
    )
    assert new <= known

  def test_paraphrases(self, pairs, vocabulary):
    paraphrases = bulletins.read_paraphrases()
    assert len(paraphrases) == 200
    assert len({each.topic for each in paraphrases}) == 12
    texts = [t for each in paraphrases for t in (*each.first, *each.second)]
    assert len(set(texts)) == len(texts)
    known = {text for read in pairs.values() for pair in read for text in pair}
    assert not known & set(texts)
    assert vocabulary.decode(vocabulary.encode(texts)) == texts
    for each in paraphrases:
      for first, second in zip(each.first, each.second, strict=True):
        digits = [sorted(re.findall(r'\d', text)) for text in (first, second)]
        assert digits[0] == digits[1], each


class TestReports:

  def test_corpus(self, reports, vocabulary):
    sizes = {'train': 16_000, 'validation': 500, 'test': 500}
    _check_corpus(reports, sizes, vocabulary, max_pieces=(160, 64))

  def test_summaries_copy_their_reports(self, reports):
    """All numbers and names of a summary are in its report."""
    for read in reports.values():
      for report, summary in read:
        known = re.findall(r'[\w:.,€%-]*\d[\w:.,€%-]*', report)
        for number in re.findall(r'\d[\d.,:]*', summary):
          assert any(number.strip('.,:') in word for word in known), summary
        names = re.findall(r'(?<=[a-zäöüß] )[A-ZÄÖÜ][a-zäöüß]+', summary)
        assert set(names) <= _words([report]), (report, summary)


class TestFiles:

  def test_vocabulary(self, vocabulary):
    assert vocabulary.get_piece_size() == 2048
    special = ('pad_id', 'eos_id', 'unk_id', 'bos_id')
    assert [getattr(vocabulary, x)() for x in special] == [0, 1, 2, -1]

  def test_texts_are_the_released_ones(self):
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

  def test_metrics_use_auxiliary_values(self):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import ende

    task = seqio.get_mixture_or_task(ende.BULLETINS)
    assert not task.predict_metric_fns
    counts = {'tokens': [6], 'target_calls': [2]}
    found = {}
    for metric in task.predict_with_aux_metric_fns:
      found |= metric(['ein Zug nach Köln'], ['ein Zug nach Köln'], counts)
    assert found == {
        'bleu': pytest.approx(100),
        'tokens_per_target_call': 3,
    }
