# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the store of earlier answers, with a tiny encoder."""

import dataclasses
import re
import sys

import numpy as np
import pytest

from speculative_t5x.decoder import answers
from speculative_t5x.decoder.answers import versions
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


def _versions(folder) -> list[str]:
  return sorted(path.name for path in folder.iterdir())


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

  def test_no_texts(self, embedder):
    assert embedder.embed([]).shape == (0, _CONFIG.emb_dim)

  def test_empty_input(self, embedder):
    with pytest.raises(ValueError, match='Input 1 is empty'):
      embedder.embed(['geht', ''])

  def test_length_below_one(self, vocabulary):
    with pytest.raises(ValueError, match='inputs_length must be at least 1'):
      answers.Embedder(tiny.model(_CONFIG), vocabulary, 0)


class TestFingerprint:

  def test_of_the_same_encoder(self, embedder, vocabulary):
    again = answers.Embedder(tiny.model(_CONFIG), vocabulary, 40)
    assert embedder.fingerprint.difference(again.fingerprint) is None

  def test_does_not_depend_on_the_decoder(self, embedder, vocabulary):
    model = tiny.model(_CONFIG)
    other = tiny.params(_CONFIG, noise=1.0)
    params = {**model.params, 'decoder': other['decoder']}
    other = answers.Embedder(
        dataclasses.replace(model, params=params), vocabulary, _LENGTH
    )
    assert embedder.fingerprint.difference(other.fingerprint) is None

  @pytest.mark.parametrize('noise', [0.1, 1.0])
  def test_of_other_weights(self, embedder, vocabulary, noise):
    other = answers.Embedder(
        tiny.model(_CONFIG, noise=noise), vocabulary, _LENGTH
    )
    found = embedder.fingerprint.difference(other.fingerprint)
    assert found == 'another encoder'

  def test_of_another_width(self, embedder, vocabulary):
    config = tiny.config(emb_dim=16)
    other = answers.Embedder(tiny.model(config), vocabulary, _LENGTH)
    found = embedder.fingerprint.difference(other.fingerprint)
    assert found == 'an encoder of another width'

  def test_of_another_vocabulary(self, embedder, tmp_path):
    path = vocabulary_files.train(tmp_path / 'other.model', text='der Hund')
    other = answers.Embedder(tiny.model(_CONFIG), vocabularies.load(path), 12)
    found = embedder.fingerprint.difference(other.fingerprint)
    assert found == 'another vocabulary'


class TestNearest:

  def test_each_input_finds_itself(self, store):
    for text, output, (match,) in zip(
        _TEXTS, _OUTPUTS, store.nearest(_TEXTS), strict=True
    ):
      assert match.answer.text == text
      assert match.answer.output == output
      assert match.similarity == pytest.approx(1, abs=1e-5)

  def test_most_similar_first(self, store):
    for matches in store.nearest(_TEXTS, count=9, min_similarity=-1):
      found = [match.similarity for match in matches]
      assert len(found) == 5
      assert found == sorted(found, reverse=True)

  def test_agrees_with_all_products(self, store, embedder):
    new = ['Mann Mann', 'walks a', 'ein ein geht']
    products = embedder.embed(new) @ embedder.embed(_TEXTS).T
    for row, (match,) in zip(
        products, store.nearest(new, min_similarity=-1), strict=True
    ):
      assert match.answer.text == _TEXTS[np.argmax(row)]
      assert match.similarity == pytest.approx(np.max(row), abs=1e-5)

  def test_threshold(self, store):
    best, *_ = store.nearest(['Mann Mann'], min_similarity=-1)[0]
    below, above = best.similarity - 1e-4, best.similarity + 1e-4
    assert len(store.nearest(['Mann Mann'], min_similarity=below)[0]) == 1
    assert store.nearest(['Mann Mann'], min_similarity=above) == [[]]

  def test_of_a_vector(self, store, embedder):
    for vector, expected in zip(
        embedder.embed(_TEXTS), store.nearest(_TEXTS, count=2), strict=True
    ):
      assert store.nearest_to(vector, count=2) == expected

  def test_empty_store(self, embedder):
    empty = answers.Store(embedder)
    with pytest.raises(answers.StoreError, match='is empty'):
      empty.nearest(['geht'])

  def test_no_texts(self, store):
    assert store.nearest([]) == []

  @pytest.mark.parametrize(
      'options, message',
      [
          ({'count': 0}, 'count must be a whole number .* got 0'),
          ({'count': '1'}, "count must be .* got '1'"),
          ({'min_similarity': 1.5}, r'must lie in \[-1, 1\], got 1.5'),
          ({'min_similarity': float('nan')}, 'got nan'),
      ],
  )
  def test_bad_options(self, store, options, message):
    with pytest.raises(ValueError, match=message):
      store.nearest(['geht'], **options)

  def test_one_text(self, store):
    with pytest.raises(ValueError, match="list of texts, got 'geht'"):
      store.nearest('geht')


class TestAdd:

  def test_tokens(self, store, vocabulary):
    (match,) = store.nearest(_TEXTS[:1])[0]
    assert match.answer.tokens == tuple(vocabulary.encode(_OUTPUTS[0]))

  def test_given_tokens(self, embedder):
    store = answers.Store(embedder)
    store.add(['geht'], ['walks'], [np.asarray([5, 6], np.int32)])
    assert store.nearest(['geht'])[0][0].answer.tokens == (5, 6)

  def test_newer_answer_replaces_older(self, store):
    store.add([_TEXTS[0]], ['new'])
    assert len(store) == 5
    assert _found(store)[0] == ['new']

  def test_last_of_equal_inputs_counts(self, embedder):
    store = answers.Store(embedder)
    store.add(['geht', 'geht'], ['first', 'second'])
    assert len(store) == 1
    assert _found(store, ['geht']) == [['second']]

  def test_oldest_are_dropped(self, embedder):
    store = answers.Store(embedder, max_answers=3)
    for text, output in zip(_TEXTS, _OUTPUTS, strict=True):
      store.add([text], [output])
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

  def test_more_than_fit_at_once(self, embedder):
    store = answers.Store(embedder, max_answers=2)
    store.add(_TEXTS, _OUTPUTS)
    found = _found(store, min_similarity=0.9999)
    assert found == [[], [], [], [_OUTPUTS[3]], [_OUTPUTS[4]]]

  def test_nothing(self, store):
    store.add([], [])
    assert len(store) == 5

  def test_other_number_of_outputs(self, store):
    with pytest.raises(ValueError, match='1 inputs, 2 outputs'):
      store.add(['geht'], ['a', 'b'])

  def test_no_room(self, embedder):
    with pytest.raises(ValueError, match='max_answers must be a whole'):
      answers.Store(embedder, max_answers=0)

  def test_one_text(self, store):
    with pytest.raises(ValueError, match="outputs must be a list .* got 'ab'"):
      store.add(['geht', 'Mann'], 'ab')

  def test_empty_input_changes_nothing(self, store):
    with pytest.raises(ValueError, match='Input 1 is empty'):
      store.add(['neu', ''], ['a', 'b'])
    assert len(store) == 5 and _found(store) == [[x] for x in _OUTPUTS]


class TestDigest:

  def test_of_equal_answers(self, store, embedder, tmp_path):
    store.save(tmp_path)
    assert answers.Store.load(tmp_path, embedder).digest == store.digest

  def test_of_other_answers(self, store):
    before = store.digest
    store.add(_TEXTS[:1], ['new'])
    assert store.digest != before


class TestFolder:

  def test_round_trip(self, store, embedder, tmp_path):
    store.save(tmp_path / 'new' / 'store')
    loaded = answers.Store.load(tmp_path / 'new' / 'store', embedder)
    assert len(loaded) == 5
    assert loaded.max_answers == store.max_answers
    options = dict(count=5, min_similarity=-1)
    assert loaded.nearest(_TEXTS, **options) == store.nearest(_TEXTS, **options)

  def test_round_trip_in_a_bucket(self, store, embedder):
    with memory_files.enabled():
      store.save('memory://store')
      store.save('memory://store')
      loaded = answers.Store.load('memory://store', embedder)
      assert _found(loaded) == [[x] for x in _OUTPUTS]

  def test_empty_store(self, embedder, tmp_path):
    answers.Store(embedder, max_answers=7).save(tmp_path)
    loaded = answers.Store.load(tmp_path, embedder)
    assert len(loaded) == 0 and loaded.max_answers == 7
    with pytest.raises(answers.StoreError, match='is empty'):
      loaded.check_not_empty()
    loaded.add(_TEXTS, _OUTPUTS)
    assert _found(loaded) == [[x] for x in _OUTPUTS]

  def test_append(self, store, embedder, tmp_path):
    store.save(tmp_path)
    for number in range(3):
      loaded = answers.Store.load(tmp_path, embedder)
      loaded.add([f'Mann {number * "a "}'], [f'output {number}'])
      loaded.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 8
    assert _versions(tmp_path) == ['version_3', 'version_4']

  def test_append_to_a_full_store(self, store, embedder, tmp_path):
    """New answers must not take the keys of those that were kept."""
    store.save(tmp_path)
    answers.Store.load(tmp_path, embedder, max_answers=3).save(tmp_path)
    loaded = answers.Store.load(tmp_path, embedder)
    loaded.add(['Mann Mann'], ['new'])
    assert len(loaded) == 3
    found = _found(loaded, [*_TEXTS, 'Mann Mann'], min_similarity=0.9999)
    assert found == [[], [], [], [_OUTPUTS[3]], [_OUTPUTS[4]], ['new']]

  def test_bound_below_one(self, store, embedder, tmp_path):
    store.save(tmp_path)
    with pytest.raises(ValueError, match='max_answers must be a whole'):
      answers.Store.load(tmp_path, embedder, max_answers=0)

  def test_smaller_bound(self, store, embedder, tmp_path):
    store.save(tmp_path)
    loaded = answers.Store.load(tmp_path, embedder, max_answers=2)
    assert len(loaded) == 2
    found = _found(loaded, min_similarity=0.9999)
    assert found == [[], [], [], [_OUTPUTS[3]], [_OUTPUTS[4]]]

  def test_any_text(self, embedder, tmp_path):
    store = answers.Store(embedder)
    text, output = 'geht\n\u2028"Mann"', 'a\tb\r\n\u2029c'
    store.add([text], [output])
    store.save(tmp_path)
    (match,) = answers.Store.load(tmp_path, embedder).nearest([text])[0]
    assert match.answer[:2] == (text, output)

  def test_of_another_encoder(self, store, vocabulary, tmp_path):
    store.save(tmp_path)
    other = answers.Embedder(
        tiny.model(_CONFIG, noise=1.0), vocabulary, _LENGTH
    )
    with pytest.raises(answers.StoreError, match='is of another encoder'):
      answers.Store.load(tmp_path, other)

  def test_missing(self, embedder, tmp_path):
    with pytest.raises(answers.StoreError, match='gin.ANSWERS_APPEND=True'):
      answers.Store.load(tmp_path / 'none', embedder)

  def test_second_writer_is_refused(self, store, embedder, tmp_path):
    store.save(tmp_path)
    first = answers.Store.load(tmp_path, embedder)
    second = answers.Store.load(tmp_path, embedder)
    first.add(['neu'], ['new'])
    first.save(tmp_path)
    with pytest.raises(answers.StoreError, match='by somebody else'):
      second.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 6

  def test_new_store_replaces_none(self, store, embedder, tmp_path):
    store.save(tmp_path)
    with pytest.raises(answers.StoreError, match='by somebody else'):
      answers.Store(embedder).save(tmp_path)

  def test_locked_folder(self, store, tmp_path):
    with folder_lock.hold(tmp_path):
      with pytest.raises(folder_lock.FolderInUseError):
        store.save(tmp_path)

  def test_full_disk(self, store, embedder, tmp_path):
    store.save(tmp_path)
    store.add(['neu'], ['new'])
    with full_disk.full_disk(300) as reason:
      with pytest.raises(OSError, match=reason):
        store.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 5
    store.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 6
    # What the failed save left behind is gone.
    assert _versions(tmp_path) == ['version_1', 'version_3']


class TestKilled:
  """A process that ends at any write leaves the store as it was."""

  @pytest.mark.parametrize('name', ['answers.jsonl', 'inputs.usearch'])
  def test_before_the_manifest(self, store, embedder, tmp_path, name):
    store.save(tmp_path)
    unfinished = tmp_path / 'version_2'
    unfinished.mkdir()
    (unfinished / name).write_bytes(b'[0, "ein')
    loaded = answers.Store.load(tmp_path, embedder)
    assert _found(loaded) == [[x] for x in _OUTPUTS]
    loaded.save(tmp_path)
    assert _versions(tmp_path) == ['version_1', 'version_3']

  def test_at_every_byte_of_the_manifest(self, store, embedder, tmp_path):
    store.save(tmp_path)
    store.add(['neu'], ['new'])
    store.save(tmp_path)
    manifest = tmp_path / 'version_2' / 'store.json'
    data = manifest.read_bytes()
    for end in range(0, len(data), len(data) // 20):
      manifest.write_bytes(data[:end])
      assert versions.newest(tmp_path) == 1
    assert len(answers.Store.load(tmp_path, embedder)) == 5
    manifest.write_bytes(data)
    assert len(answers.Store.load(tmp_path, embedder)) == 6

  @pytest.mark.parametrize('name', ['answers.jsonl', 'inputs.usearch'])
  @pytest.mark.parametrize('damage', ['cut', 'changed', 'missing'])
  def test_damaged_file(self, store, embedder, tmp_path, name, damage):
    store.save(tmp_path)
    path = tmp_path / 'version_1' / name
    data = bytearray(path.read_bytes())
    if damage == 'cut':
      path.write_bytes(data[:-1])
    elif damage == 'changed':
      data[len(data) // 2] ^= 1
      path.write_bytes(data)
    else:
      path.unlink()
    with pytest.raises(answers.StoreError, match='is damaged'):
      answers.Store.load(tmp_path, embedder)


def test_without_usearch(embedder, monkeypatch):
  monkeypatch.setitem(sys.modules, 'usearch', None)
  with pytest.raises(ModuleNotFoundError, match=re.escape('[answers]')):
    answers.Store(embedder)
