# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the store of earlier answers and of its hints, with a tiny T5."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import answers
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import whole_batches
from tests import memory_files
from tests import tiny
from tests import vocabulary_files

pytest.importorskip('usearch')

_CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
_INPUTS, _LENGTH = 24, 12  # inputs, but for one that is cut, are shorter
_TEXTS = ['ein Mann geht', 'a man walks', 'ein man', 'a Mann', 'geht']
_OUTPUTS = ['a man walks', 'ein Mann geht', 'a man', 'ein Mann', 'walks']


@pytest.fixture(scope='module')
def vocabulary(tmp_path_factory):
  path = tmp_path_factory.mktemp('vocabulary') / 'spiece.model'
  return vocabularies.load(vocabulary_files.train(path))


@pytest.fixture(scope='module')
def decoder(vocabulary):
  return text_decoder.TextDecoder(
      tiny.model(_CONFIG),
      lookup_drafting.Lookup(),
      vocabulary,
      gamma=2,
      inputs_length=_INPUTS,
      max_tokens=_LENGTH,
      matmul_precision='highest',
  )


@pytest.fixture(scope='module')
def embedder(decoder):
  return answers.Embedder(decoder.tokens, decoder.vocabulary, _INPUTS)


@pytest.fixture
def store(embedder):
  made = answers.Store(embedder)
  made.add(_TEXTS, _OUTPUTS)
  return made


def _found(store, texts=_TEXTS, **options):
  """Return the outputs found for inputs."""
  nearest = store.nearest(texts, **options)
  return [[each.output for each in found] for found in nearest]


class TestEmbed:

  def test_means_of_the_encoder(self, decoder, embedder):
    """Of the tokens alone, whatever the batch and the padding."""
    vectors = embedder.embed([*_TEXTS, 'geht ' * 9])[:-1]
    assert vectors.dtype == np.float32
    model = decoder.tokens.target
    encode = jax.jit(model.config.encode)
    for text, vector in zip(_TEXTS, vectors, strict=True):
      ids = [*decoder.vocabulary.encode(text), 1]
      features = encode(model.params, jnp.asarray([ids]))
      mean = np.asarray(features, np.float32).mean((0, 1))
      expected = mean / np.linalg.norm(mean)
      np.testing.assert_allclose(vector, expected, atol=1e-5)
    assert embedder.embed([]).shape == (0, _CONFIG.emb_dim)

  def test_long_inputs_are_cut(self, embedder, vocabulary):
    long = ' '.join(_TEXTS * 4)
    ids = [*vocabulary.encode(long)[: _INPUTS - 1], vocabulary.eos_id]
    expected = embedder._embed_ids([ids], _INPUTS)
    np.testing.assert_allclose(embedder.embed([long]), expected, atol=1e-6)

  def test_more_than_a_batch(self, embedder, monkeypatch):
    expected = embedder.embed(_TEXTS)
    monkeypatch.setattr(answers, '_MAX_BATCH', 2)
    np.testing.assert_allclose(embedder.embed(_TEXTS), expected, atol=1e-5)


class TestNearest:

  def test_agrees_with_all_products(self, store, embedder):
    new = ['Mann Mann', 'walks a', *_TEXTS]
    products = embedder.embed(new) @ embedder.embed(_TEXTS).T
    found = store.nearest(new, count=9, min_similarity=-1)
    for row, similar in zip(products, found, strict=True):
      order = np.argsort(-row)
      expected = [(_TEXTS[i], _OUTPUTS[i]) for i in order]
      assert [(x.text, x.output) for x in similar] == expected
      similarities = [each.similarity for each in similar]
      np.testing.assert_allclose(similarities, row[order], atol=1e-5)
    assert store.nearest(new, count=2, min_similarity=-1) == [
        similar[:2] for similar in found
    ]

  def test_threshold(self, store):
    ((best,),) = store.nearest(['Mann Mann'], min_similarity=-1)
    below, above = best.similarity - 1e-4, best.similarity + 1e-4
    assert len(store.nearest(['Mann Mann'], min_similarity=below)[0]) == 1
    assert store.nearest(['Mann Mann'], min_similarity=above) == [[]]


class TestAdd:

  def test_newer_answer_replaces_older(self, store):
    store.add([_TEXTS[0], _TEXTS[0]], ['old', 'new'])
    assert len(store) == 5
    assert _found(store) == [['new'], *([x] for x in _OUTPUTS[1:])]

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


class TestFile:

  @pytest.mark.parametrize('place', ['local', 'memory'])
  def test_round_trip(self, store, embedder, tmp_path, place):
    """Of any text; a folder can be saved to again."""
    store.add(['geht\n\u2028"Mann"'], ['a\tb\r\n\u2029c'])
    with memory_files.enabled():
      path = tmp_path / 'new' if place == 'local' else 'memory://store'
      store.save(path)
      store.save(path)
      loaded = answers.Store.load(path, embedder)
    if place == 'local':
      assert [each.name for each in path.iterdir()] == ['answers.npz']
    assert len(loaded) == 6 and loaded.to_json() == store.to_json()
    assert loaded.max_answers == store.max_answers
    options = dict(count=6, min_similarity=-1)
    assert loaded.nearest(_TEXTS, **options) == store.nearest(_TEXTS, **options)

  def test_empty_store(self, embedder, tmp_path):
    answers.Store(embedder, max_answers=7).save(tmp_path)
    loaded = answers.Store.load(tmp_path, embedder)
    assert len(loaded) == 0 and loaded.max_answers == 7
    loaded.add(_TEXTS, _OUTPUTS)
    assert _found(loaded) == [[x] for x in _OUTPUTS]

  def test_second_writer_is_refused(self, store, embedder, tmp_path):
    store.save(tmp_path)
    first = answers.Store.load(tmp_path, embedder)
    second = answers.Store.load(tmp_path, embedder)
    first.add(['neu'], ['new'])
    first.save(tmp_path)
    for other in (second, answers.Store(embedder)):
      with pytest.raises(answers.StoreError, match='by another process'):
        other.save(tmp_path)
    with folder_lock.hold(tmp_path):
      with pytest.raises(folder_lock.FolderInUseError):
        first.save(tmp_path)
    assert len(answers.Store.load(tmp_path, embedder)) == 6

  def test_damaged_at_any_byte(self, store, embedder, tmp_path):
    """A file that is cut or has another byte is refused, or has its answers."""
    more = [f'geht {i}' for i in range(123)]
    store.add(more, more)
    store.save(tmp_path)
    path = tmp_path / 'answers.npz'
    data = path.read_bytes()
    assert b'(128, 32)' in data
    damaged = [data.replace(b'(128, 32)', b'(118, 32)')]
    for at in range(0, len(data), len(data) // 60):
      changed = bytearray(data)
      changed[at] ^= 1
      damaged += data[:at], bytes(changed)
    refused = 0
    for wrong in damaged:
      path.write_bytes(wrong)
      try:
        loaded = answers.Store.load(tmp_path, embedder)
        assert loaded.to_json() == store.to_json()
        np.testing.assert_array_equal(loaded._vectors, store._vectors)
      except answers.StoreError as error:
        assert len(str(error).splitlines()) == 1
        refused += 1
    assert refused > 100

  def test_another_encoder_or_vocabulary(self, store, vocabulary, tmp_path):
    """Neither the decoder of the target nor the length matters."""
    store.save(tmp_path)
    model = tiny.model(_CONFIG)
    decoder = tiny.params(_CONFIG, noise=1.0)['decoder']
    params = {**model.params, 'decoder': decoder}
    wide = dataclasses.replace(_CONFIG, emb_dim=48)
    # Of as many pieces, so that the probe has the same ids.
    path = tmp_path / 'other.model'
    vocabulary_files.train(path, text='ein Zann geht')
    for other, pieces, is_same in (
        (dataclasses.replace(model, params=params), vocabulary, True),
        (tiny.model(_CONFIG, noise=0.1), vocabulary, False),
        (tiny.model(wide), vocabulary, False),
        (model, vocabularies.load(path), False),
    ):
      decoder = token_decoder.TokenDecoder(other, max_tokens=_LENGTH)
      other = answers.Embedder(decoder, pieces, 12)
      if is_same:
        assert len(answers.Store.load(tmp_path, other)) == 5
        continue
      with pytest.raises(answers.StoreError, match='is of another encoder'):
        answers.Store.load(tmp_path, other)

  def test_refused(self, embedder, tmp_path):
    with pytest.raises(answers.StoreError, match='make a store'):
      answers.Store.load(tmp_path, embedder)
    # As an earlier version wrote it.
    np.savez(tmp_path / 'answers.npz', manifest=[1], answers=[1], index=[1])
    with pytest.raises(answers.StoreError, match='fill a store in another'):
      answers.Store.load(tmp_path, embedder)


def _hints(batch):
  return hints_lib.unstack(np.asarray(batch.hints))


class TestFinder:

  def test_own_hints_come_first(self, decoder, store):
    """And each input finds its answer, by the features for decoding."""
    hints = [['geht', 'a'], None, None, None, None]
    batch, _ = whole_batches.make_batch(decoder, _TEXTS, hints=hints)
    found = answers.Finder(store)(batch)
    encode = lambda text: [*decoder.vocabulary.encode(text), 1][:_LENGTH]
    own = [list(map(encode, each or [])) for each in hints]
    near = [[encode(text)] for text in _OUTPUTS]
    assert _hints(found) == [x + y for x, y in zip(own, near, strict=True)]
    np.testing.assert_array_equal(
        found.features, decoder.tokens.encode(batch)
    )

  @pytest.mark.parametrize('beams', [1, 2])
  def test_outputs_do_not_change(self, decoder, embedder, beams):
    """And the target is called less often, since answers repeat."""
    plain = decoder.decode_plain(_TEXTS, beams=beams)
    store = answers.Store(embedder)
    store.add(_TEXTS, [decodes[-1] for decodes in plain.texts])
    finder = answers.Finder(store)
    found = decoder.decode(_TEXTS, answers=finder, beams=beams)
    without = decoder.decode(_TEXTS, beams=beams)
    assert found.texts == without.texts == plain.texts
    calls = [x.statistics['target_calls'] for x in (found, without)]
    assert calls[0] < calls[1]

  def test_long_answer_is_cut(self, decoder, store):
    long = 'a Mann ' * 9
    store.add(_TEXTS[:1], [long])
    batch, _ = whole_batches.make_batch(decoder, _TEXTS[:1])
    ids = decoder.vocabulary.encode(long)[:_LENGTH]
    assert _hints(answers.Finder(store)(batch)) == [[ids]]

  def test_refused(self, decoder, store, vocabulary):
    drafter = model_drafting.of_model(decoder.tokens.target)
    other = decoder.tokens.with_drafter(drafter, 2)
    no_hints = answers.Embedder(other, vocabulary, _INPUTS)
    for message, refused in (
        ('count', lambda: answers.Finder(store, 0)),
        ('min_similarity', lambda: answers.Finder(store, 1, float('nan'))),
        ('lookup.gin', lambda: answers.Finder(answers.Store(no_hints))),
        ('inputs_length', lambda: answers.Embedder(other, vocabulary, 0)),
        ('max_answers', lambda: answers.Store(store.embedder, 0)),
        ('longer', lambda: store.add(['geht'], ['a', 'b'])),
        ('is empty', lambda: answers.Store(store.embedder).nearest(['geht'])),
    ):
      with pytest.raises(ValueError, match=message):
        refused()
