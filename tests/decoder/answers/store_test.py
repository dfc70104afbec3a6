# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the store of earlier answers, with a tiny encoder."""

import dataclasses
import os
import re
import sys

import numpy as np
import pytest

from speculative_t5x.decoder import answers
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import folder_lock
from tests import full_disk
from tests import memory_files
from tests import tiny
from tests import vocabulary_files

pytest.importorskip('usearch')

_CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
_LENGTH = 24  # of inputs; all texts below are shorter
_TEXTS = ['ein Mann geht', 'a man walks', 'ein man', 'a Mann', 'geht']
_OUTPUTS = ['a man walks', 'ein Mann geht', 'a man', 'ein Mann', 'walks']


@pytest.fixture(scope='module')
def vocabulary(tmp_path_factory):
  path = tmp_path_factory.mktemp('vocabulary') / 'spiece.model'
  return vocabularies.load(vocabulary_files.train(path))


@pytest.fixture(scope='module')
def embedder(vocabulary):
  return answers.Embedder(tiny.model(_CONFIG), vocabulary, _LENGTH)


@pytest.fixture
def store(embedder):
  made = answers.Store(embedder)
  made.add(_TEXTS, _OUTPUTS)
  return made


def _found(store, texts=_TEXTS, **options):
  """Returns the outputs found for inputs."""
  return [
      [match.answer.output for match in matches]
      for matches in store.nearest(texts, **options)
  ]


class TestEmbedder:

  def test_vectors_are_normalized(self, embedder):
    vectors = embedder.embed(_TEXTS)
    assert vectors.shape == (5, _CONFIG.emb_dim)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)

  def test_padding_and_batch_change_nothing(self, embedder, vocabulary):
    longer = answers.Embedder(tiny.model(_CONFIG), vocabulary, 40)
    alone = np.concatenate([embedder.embed([text]) for text in _TEXTS])
    together = longer.embed([*_TEXTS, ' '.join(_TEXTS[:2] * 3)])[:-1]
    np.testing.assert_allclose(together, alone, atol=1e-5)

  def test_long_inputs_are_cut(self, embedder, vocabulary):
    long = ' '.join(_TEXTS * 4)
    ids = vocabulary.encode(long)[: _LENGTH - 1]
    np.testing.assert_allclose(
        embedder.embed([long]),
        embedder._embed_rows([[*ids, vocabulary.eos_id]]),
        atol=1e-6,
    )


class TestFingerprint:

  def test_tells_encoders_apart(self, embedder, vocabulary, tmp_path):
    """By their outputs: neither the decoder nor the length matters."""
    model = tiny.model(_CONFIG)
    decoder = tiny.params(_CONFIG, noise=1.0)['decoder']
    params = {**model.params, 'decoder': decoder}
    same = dataclasses.replace(model, params=params)
    path = vocabulary_files.train(tmp_path / 'other.model', text='der Hund')
    for other, pieces, expected in (
        (same, vocabulary, None),
        (tiny.model(_CONFIG, noise=0.1), vocabulary, 'another encoder'),
        (model, vocabularies.load(path), 'another vocabulary'),
    ):
      other = answers.Embedder(other, pieces, 12)
      found = embedder.fingerprint.difference(other.fingerprint)
      assert found == expected


class TestNearest:

  def test_each_input_finds_itself(self, store):
    for text, output, (match,) in zip(
        _TEXTS, _OUTPUTS, store.nearest(_TEXTS), strict=True
    ):
      assert match.answer.text == text
      assert match.answer.output == output
      assert match.similarity == pytest.approx(1, abs=1e-5)

  def test_agrees_with_all_products(self, store, embedder):
    new = ['Mann Mann', 'walks a', 'ein ein geht']
    products = embedder.embed(new) @ embedder.embed(_TEXTS).T
    found = store.nearest(new, count=9, min_similarity=-1)
    for row, matches in zip(products, found, strict=True):
      order = np.argsort(-row)
      assert [x.answer.text for x in matches] == [_TEXTS[i] for i in order]
      similarities = [match.similarity for match in matches]
      np.testing.assert_allclose(similarities, row[order], atol=1e-5)

  def test_threshold(self, store):
    best, *_ = store.nearest(['Mann Mann'], min_similarity=-1)[0]
    below, above = best.similarity - 1e-4, best.similarity + 1e-4
    assert len(store.nearest(['Mann Mann'], min_similarity=below)[0]) == 1
    assert store.nearest(['Mann Mann'], min_similarity=above) == [[]]


class TestAdd:

  def test_newer_answer_replaces_older(self, store):
    before = store.digest
    store.add([_TEXTS[0], _TEXTS[0]], ['old', 'new'])
    assert len(store) == 5
    assert _found(store)[0] == ['new']
    assert store.digest != before

  @pytest.mark.parametrize('size', [1, 2, 5])
  def test_oldest_are_dropped(self, embedder, size):
    """Also where more are added at once than fit."""
    store = answers.Store(embedder, max_answers=3)
    for first in range(0, len(_TEXTS), size):
      part = slice(first, first + size)
      store.add(_TEXTS[part], _OUTPUTS[part])
    assert len(store) == 3
    found = _found(store, min_similarity=0.9999)
    assert found == [[], [], *([x] for x in _OUTPUTS[2:])]

  def test_replaced_answer_is_the_newest(self, embedder):
    store = answers.Store(embedder, max_answers=2)
    store.add(_TEXTS[:2], _OUTPUTS[:2])
    store.add(_TEXTS[:1], ['new'])
    store.add(_TEXTS[2:3], _OUTPUTS[2:3])
    found = _found(store, _TEXTS[:3], min_similarity=0.9999)
    assert found == [['new'], [], [_OUTPUTS[2]]]

  def test_empty_input_changes_nothing(self, store):
    with pytest.raises(ValueError, match='Input 1 is empty'):
      store.add(['neu', ''], ['a', 'b'])
    assert len(store) == 5 and _found(store) == [[x] for x in _OUTPUTS]


class TestFolder:

  @pytest.mark.parametrize('place', ['local', 'memory'])
  def test_round_trip(self, store, embedder, tmp_path, place):
    """Of any text and tokens; a folder can be saved to again."""
    text, output = 'geht\n\u2028"Mann"', 'a\tb\r\n\u2029c'
    store.add([text], [output], [np.asarray([5, 6], np.int32)])
    with memory_files.enabled():
      path = tmp_path / 'new' if place == 'local' else 'memory://store'
      store.save(path)
      store.save(path)
      loaded = answers.Store.load(path, embedder)
    if place == 'local':
      assert [each.name for each in path.iterdir()] == ['answers.npz']
    (match,) = loaded.nearest([text])[0]
    assert match.answer == (text, output, (5, 6))
    assert len(loaded) == 6 and loaded.digest == store.digest
    assert loaded.max_answers == store.max_answers
    options = dict(count=5, min_similarity=-1)
    assert loaded.nearest(_TEXTS, **options) == store.nearest(_TEXTS, **options)

  def test_empty_store(self, embedder, tmp_path):
    answers.Store(embedder, max_answers=7).save(tmp_path)
    loaded = answers.Store.load(tmp_path, embedder)
    assert len(loaded) == 0 and loaded.max_answers == 7
    with pytest.raises(answers.StoreError, match='is empty'):
      loaded.check_not_empty()
    loaded.add(_TEXTS, _OUTPUTS)
    assert _found(loaded) == [[x] for x in _OUTPUTS]

  def test_append_to_a_full_store(self, store, embedder, tmp_path):
    """New answers must not take the keys of those that were kept."""
    store.save(tmp_path)
    answers.Store.load(tmp_path, embedder, max_answers=3).save(tmp_path)
    loaded = answers.Store.load(tmp_path, embedder)
    loaded.add(['Mann Mann'], ['new'])
    assert len(loaded) == 3
    found = _found(loaded, [*_TEXTS, 'Mann Mann'], min_similarity=0.9999)
    assert found == [[], [], [], [_OUTPUTS[3]], [_OUTPUTS[4]], ['new']]

  def test_second_writer_is_refused(self, store, embedder, tmp_path):
    store.save(tmp_path)
    first = answers.Store.load(tmp_path, embedder)
    second = answers.Store.load(tmp_path, embedder)
    first.add(['neu'], ['new'])
    first.save(tmp_path)
    with pytest.raises(answers.StoreError, match='by another process'):
      second.save(tmp_path)
    with folder_lock.hold(tmp_path):
      with pytest.raises(folder_lock.FolderInUseError):
        first.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 6

  def test_full_disk(self, store, embedder, tmp_path):
    store.save(tmp_path)
    store.add(['neu'], ['new'])
    with full_disk.full_disk(300) as reason:
      with pytest.raises(OSError, match=reason):
        store.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 5
    store.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 6


class TestRefused:

  def test_values(self, store, vocabulary, embedder, tmp_path):
    store.save(tmp_path)
    other = tiny.model(_CONFIG, noise=1.0)
    other = answers.Embedder(other, vocabulary, _LENGTH)
    load, nearest = answers.Store.load, store.nearest
    for message, refused in {
        'inputs_length': lambda: answers.Embedder(other.model, vocabulary, 0),
        'count': lambda: nearest(['geht'], count=0),
        'min_similarity': lambda: nearest(['a'], min_similarity=float('nan')),
        "list of texts, got 'geht'": lambda: nearest('geht'),
        'is empty': lambda: answers.Store(embedder).nearest(['geht']),
        'longer': lambda: store.add(['geht'], ['a', 'b']),
        'is of another encoder': lambda: load(tmp_path, other),
        'gin.ANSWERS_APPEND=True': lambda: load(tmp_path / 'none', embedder),
    }.items():
      with pytest.raises(ValueError, match=message):
        refused()


class TestDamaged:

  def test_killed_while_saving(self, store, embedder, tmp_path, monkeypatch):
    """The store stays as it was."""
    store.save(tmp_path)
    store.add(['neu'], ['new'])

    def interrupt(*_):
      raise KeyboardInterrupt

    monkeypatch.setattr(os, 'replace', interrupt)
    with pytest.raises(KeyboardInterrupt):
      store.save(tmp_path)
    monkeypatch.undo()
    loaded = answers.Store.load(tmp_path, embedder)
    assert _found(loaded) == [[x] for x in _OUTPUTS]
    loaded.save(tmp_path)

  def test_at_any_byte(self, store, embedder, tmp_path):
    """A file that is cut or has another byte is damaged, or has its answers."""
    store.save(tmp_path)
    path = tmp_path / 'answers.npz'
    data = path.read_bytes()
    damaged = 0
    for at in range(0, len(data), len(data) // 60):
      changed = bytearray(data)
      changed[at] ^= 1
      for wrong in (data[:at], bytes(changed)):
        path.write_bytes(wrong)
        try:
          loaded = answers.Store.load(tmp_path, embedder)
          assert loaded.digest == store.digest
        except answers.StoreError as error:
          assert 'is damaged' in str(error)
          damaged += 1
    assert damaged > 100


def test_without_usearch(embedder, monkeypatch):
  monkeypatch.setitem(sys.modules, 'usearch', None)
  with pytest.raises(ModuleNotFoundError, match=re.escape('[answers]')):
    answers.Store(embedder)
