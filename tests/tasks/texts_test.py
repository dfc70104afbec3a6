# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of texts without inputs, on stand-ins for LM1B and Multi30k."""

import json
import shutil

import gin
import pytest
import seqio
import tensorflow as tf

from scripts import word_pieces
from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import task_vocabulary
from speculative_t5x.tasks import texts
from tests import prepared_data

_CLS, _SEP = 2, 3
_LENGTHS = {'inputs': 4, 'targets': 8}
_TEXTS = ['A man walks .', 'The man reads', 'A dog']


@pytest.fixture(scope='module')
def vocabulary_file(tmp_path_factory):
  folder = tmp_path_factory.mktemp('vocabulary')
  assert word_pieces.train(_TEXTS * 5, folder, 64) <= 64
  return folder / 'tokenizer.json'


@pytest.fixture
def encode(vocabulary_file):
  return vocabularies.load(vocabulary_file).encode


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """Return a folder of a prepared data set, with slices of its few rows."""
  rows = [{'text': text} for text in _TEXTS]
  monkeypatch.setattr(
      texts,
      '_SPLITS',
      {'train': 'train[1:]', 'validation': 'train[:1]', 'test': 'test'},
  )
  return prepared_data.write(
      'lm1b:1.1.0', {'train': rows, 'test': rows[:1]}, tmp_path
  )


def test_gin_file(vocabulary_file, encode, folder, monkeypatch):
  prepared_data.parse(
      monkeypatch,
      'lm1b',
      f'VOCABULARY_FILE = "{vocabulary_file}"',
      f'TFDS_DATA_DIR = "{folder}"',
  )
  name = gin.get_configurable(texts.register_lm1b)()
  lengths = gin.query_parameter('%TASK_FEATURE_LENGTHS')
  rows = []
  for split in ('validation', 'train'):
    loaded = examples.load(name, split, lengths)
    rows += loaded.rows
  assert [row.tokens for row in rows] == [[_CLS]] * 3
  targets = [row.target_tokens.tolist() for row in rows]
  assert targets == [[*encode(text), _SEP] for text in _TEXTS]
  # Parts of a split have the ids of the whole one.
  assert [row.example_id for row in rows] == [0, 1, 2]
  assert loaded.targets == ['the man reads', 'a dog']
  assert isinstance(loaded.vocabulary, vocabularies.TokenizerVocabulary)


@pytest.mark.parametrize('count', [2, 9])
def test_prompt(vocabulary_file, encode, tmp_path, count):
  """A text goes on where its prompt ends, or has ended there."""
  file = tmp_path / 'a.jsonl'
  file.write_text('\n'.join(json.dumps({'text': text}) for text in _TEXTS))
  name = texts.register_lm1b(
      vocabulary_file, files={'test': file}, prompt_tokens=count
  )
  loaded = examples.load(name, 'test', {'inputs': 16, 'targets': 8})
  ids = [encode(text) for text in _TEXTS]
  assert [x.tokens for x in loaded.rows] == [[_CLS, *x[:count]] for x in ids]
  targets = [row.target_tokens.tolist() for row in loaded.rows]
  assert targets == [[*x[count:], _SEP] for x in ids]
  assert loaded.inputs[2] == 'a dog'


class TestTokenizerVocabulary:

  def test_in_tensorflow(self, vocabulary_file, encode):
    vocabulary = task_vocabulary.SeqioTokenizer(vocabulary_file)
    ids = vocabulary.encode_tf(tf.constant(_TEXTS[0]))
    assert ids.numpy().tolist() == encode(_TEXTS[0])
    decoded = vocabulary.decode_tf(tf.stack([ids, ids[::-1]]))
    assert decoded.numpy().tolist() == [b'a man walks.', b'. walks man a']
    assert vocabulary.decode_tf(ids).numpy() == b'a man walks.'
    assert vocabulary.vocab_size == vocabulary.vocabulary.num_ids
    assert (vocabulary.bos_id, vocabulary.eos_id) == (_CLS, _SEP)

  def test_equals_one_of_the_same_pieces(self, vocabulary_file, tmp_path):
    make = task_vocabulary.SeqioTokenizer
    # Training anew may order pieces of equal score otherwise.
    shutil.copytree(vocabulary_file.parent, tmp_path / 'same')
    word_pieces.train(['other words'] * 5, tmp_path / 'other', 64)
    one = make(vocabulary_file)
    assert one == make(tmp_path / 'same/tokenizer.json')
    assert one != make(tmp_path / 'other/tokenizer.json')
    assert one != seqio.ByteVocabulary()
