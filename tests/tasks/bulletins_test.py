# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the embedded corpora."""

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import sentencepiece

from speculative_t5x.tasks import bulletins

_MAX_TOKENS = 96  # EOS included.
_SIZES = {'train': 80_000, 'validation': 500, 'test': 500}


@pytest.fixture(scope='module')
def pairs():
  return {split: bulletins.read_pairs(split) for split in bulletins.SPLITS}


@pytest.fixture(scope='module')
def reports():
  return {split: bulletins.read_reports(split) for split in bulletins.SPLITS}


@pytest.fixture(scope='module')
def paraphrases():
  return bulletins.read_paraphrases()


def _words(texts) -> set[str]:
  return {word for text in texts for word in re.findall(r'[^\W\d_]+', text)}


class TestShippedText:

  def test_sizes(self, pairs):
    assert {split: len(read) for split, read in pairs.items()} == _SIZES

  @pytest.mark.parametrize('side', [0, 1])
  def test_no_text_occurs_twice(self, pairs, side):
    texts = [pair[side] for read in pairs.values() for pair in read]
    assert len(set(texts)) == len(texts)

  def test_plain_spaces_and_punctuation(self, pairs):
    wrong = re.compile(r'[^\S ]|  | [.,]|[,.][,.]|,[^\d ]|[][{}@^/|+]|^ | $')
    for read in pairs.values():
      for pair in read:
        for text in pair:
          assert not wrong.search(text), text
          assert text.endswith('.') and not text[0].islower(), text

  def test_same_digits_on_both_sides(self, pairs):
    # Except for times of day, which English counts to twelve.
    clock = re.compile(r'\d+:\d\d( [AP]M)?')
    for read in pairs.values():
      for pair in read:
        english, german = (clock.sub('', text) for text in pair)
        assert sorted(re.findall(r'\d', english)) == sorted(
            re.findall(r'\d', german)
        ), pair

  def test_hash_mismatch(self, tmp_path, monkeypatch):
    folder = pathlib.Path(bulletins.VOCABULARY_FILE).parent
    shutil.copy(folder / 'SHA256SUMS', tmp_path)
    shutil.copy(folder / 'test.tsv.gz', tmp_path / 'validation.tsv.gz')
    monkeypatch.setattr(bulletins, '_FOLDER', tmp_path)
    with pytest.raises(ValueError, match='validation.tsv.gz has SHA-256'):
      bulletins.read_pairs('validation')

  def test_unknown_split(self):
    with pytest.raises(ValueError, match="Got 'dev'"):
      bulletins.read_pairs('dev')

  def test_reads_without_tensorflow(self):
    code = (
        'import sys; from speculative_t5x.tasks import bulletins, multi30k;'
        'bulletins.read_pairs("test");'
        'assert not {"tensorflow", "seqio"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, '-c', code], check=True)


class TestShippedReports:

  def test_sizes(self, reports):
    found = {split: len(read) for split, read in reports.items()}
    assert found == {'train': 16_000, 'validation': 500, 'test': 500}

  @pytest.mark.parametrize('side', [0, 1])
  def test_no_text_occurs_twice(self, reports, side):
    texts = [pair[side] for read in reports.values() for pair in read]
    assert len(set(texts)) == len(texts)

  def test_sentences(self, reports):
    wrong = re.compile(r'[^\S ]|  | [.,]|[,.][,.]|,[^\d ]|[][{}@^/|+]|^ | $')
    for read in reports.values():
      for pair in read:
        for text in pair:
          assert not wrong.search(text), text
          assert text.endswith('.') and not text[0].islower(), text
        report, summary = (re.findall(r'\D\.(?: |$)', t) for t in pair)
        assert 3 <= len(report) <= 5, pair
        assert 1 <= len(summary) <= 2, pair

  def test_summaries_copy_their_reports(self, reports):
    # Nothing but the first letter of a sentence, 'weil' and a verb whose prefix
    # is separated may be new: all numbers, names and times are copied.
    for read in reports.values():
      for report, summary in read:
        known = re.findall(r'[\w:.,€%-]*\d[\w:.,€%-]*', report)
        for number in re.findall(r'\d[\d.,:]*', summary):
          assert any(number.strip('.,:') in word for word in known), summary
        names = re.findall(r'(?<=[a-zäöüß] )[A-ZÄÖÜ][a-zäöüß]+', summary)
        assert set(names) <= _words([report]), (report, summary)

  def test_lengths_and_round_trip(self, reports):
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )
    for read in reports.values():
      for texts, longest in zip(zip(*read), (160, 64), strict=True):
        encoded = vocabulary.encode(list(texts))
        assert max(map(len, encoded)) + 1 <= longest
        assert all(vocabulary.unk_id() not in ids for ids in encoded)
        assert vocabulary.decode(encoded) == list(texts)

  def test_unknown_split(self):
    with pytest.raises(ValueError, match="Got 'dev'"):
      bulletins.read_reports('dev')

  def test_task(self):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import bulletin_summaries

    task = seqio.get_mixture_or_task(bulletin_summaries.BULLETINS_SUMMARY)
    dataset = task.get_dataset(
        {'inputs': 160, 'targets': 64}, 'test', shuffle=False
    )
    example = next(dataset.as_numpy_iterator())
    report, summary = bulletins.read_reports('test')[0]
    assert example['inputs_pretokenized'].decode() == report
    assert example['targets_pretokenized'].decode() == summary
    assert example['targets'][-1] == 1


class TestShippedParaphrases:

  def test_sizes(self, paraphrases):
    assert len(paraphrases) == 200
    assert len({each.topic for each in paraphrases}) == 12

  def test_no_text_is_in_another_split(self, paraphrases, pairs):
    texts = [t for each in paraphrases for t in (*each.first, *each.second)]
    assert len(set(texts)) == len(texts)
    known = {text for read in pairs.values() for pair in read for text in pair}
    assert not known & set(texts)

  def test_both_state_the_same_facts(self, paraphrases):
    for each in paraphrases:
      for first, second in zip(each.first, each.second, strict=True):
        digits = [sorted(re.findall(r'\d', text)) for text in (first, second)]
        assert digits[0] == digits[1], each
        assert first != second

  def test_vocabulary_and_lengths(self, paraphrases):
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )
    texts = [t for each in paraphrases for t in (*each.first, *each.second)]
    encoded = vocabulary.encode(texts)
    assert max(map(len, encoded)) + 1 <= _MAX_TOKENS
    assert vocabulary.decode(encoded) == texts


class TestVocabulary:

  @pytest.fixture
  def vocabulary(self):
    return sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )

  def test_hash(self):
    path = pathlib.Path(bulletins.VOCABULARY_FILE)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f'{found}  {path.name}\n' in (
        path.with_name('SHA256SUMS').read_text()
    )

  def test_special_pieces(self, vocabulary):
    assert vocabulary.get_piece_size() == 2048
    assert vocabulary.pad_id() == 0
    assert vocabulary.eos_id() == 1
    assert vocabulary.unk_id() == 2
    assert vocabulary.bos_id() == -1

  def test_lengths_and_round_trip(self, vocabulary, pairs):
    for read in pairs.values():
      texts = [text for pair in read for text in pair]
      encoded = vocabulary.encode(texts)
      assert max(map(len, encoded)) + 1 <= _MAX_TOKENS
      assert all(vocabulary.unk_id() not in ids for ids in encoded)
      assert vocabulary.decode(encoded) == texts


class TestTask:

  def test_examples(self):
    seqio = pytest.importorskip('seqio')
    from speculative_t5x.tasks import ende

    task = seqio.get_mixture_or_task(ende.BULLETINS)
    dataset = task.get_dataset(
        {'inputs': _MAX_TOKENS, 'targets': _MAX_TOKENS}, 'test', shuffle=False
    )
    examples = list(dataset.as_numpy_iterator())
    pairs = bulletins.read_pairs('test')
    assert [e['example_id'] for e in examples] == list(range(len(pairs)))
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=bulletins.VOCABULARY_FILE
    )
    for example, pair in zip(examples, pairs, strict=True):
      for side, text in zip(('inputs', 'targets'), pair, strict=True):
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
