# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of answers found by features that decoding reuses, with a tiny T5."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import answers
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.decoder.answers import embedding
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import lookup_source
from tests import tiny
from tests import vocabulary_files

pytest.importorskip('usearch')

_CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
_INPUTS, _LENGTH = 24, 12
_TEXTS = ['ein Mann geht', 'a man walks', 'ein man', 'a Mann', 'geht']


@pytest.fixture(scope='module')
def decoder(tmp_path_factory):
  path = tmp_path_factory.mktemp('vocabulary') / 'spiece.model'
  return text_decoder.TextDecoder(
      tiny.model(_CONFIG),
      lookup_source.FromContext().load(),
      vocabularies.load(vocabulary_files.train(path)),
      gamma=4,
      inputs_length=_INPUTS,
      targets_length=_LENGTH,
      matmul_precision='highest',
  )


@pytest.fixture(scope='module')
def embedder(decoder):
  return answers.Embedder(decoder.tokens.target, decoder.vocabulary, _INPUTS)


@pytest.fixture(scope='module')
def outputs(decoder):
  return [decodes[-1] for decodes in decoder.decode_plain(_TEXTS).texts]


@pytest.fixture
def store(embedder, outputs):
  made = answers.Store(embedder)
  made.add(_TEXTS, outputs)
  return made


def _hints(request):
  return hints_lib.unstack(np.asarray(request.hints))


def test_vectors_are_those_of_the_embedder(decoder, embedder):
  request, _ = decoder.make_request(_TEXTS)
  features = decoder.tokens.encode(request)
  found = embedding.pool(features, request.inputs)
  np.testing.assert_allclose(found, embedder.embed(_TEXTS), atol=1e-5)


class TestFinder:

  def test_each_input_finds_its_answer(self, decoder, store, outputs):
    request, _ = decoder.make_request(_TEXTS)
    found = answers.Finder(decoder.tokens, store)(request)
    encode = decoder.vocabulary.encode
    expected = [[[*encode(text), 1][:_LENGTH]] for text in outputs]
    assert _hints(found) == expected
    np.testing.assert_array_equal(
        found.features, decoder.tokens.encode(request)
    )

  def test_outputs_do_not_change(self, decoder, store):
    """And the target is called less often, since answers repeat."""
    finder = answers.Finder(decoder.tokens, store)
    found = decoder.decode(_TEXTS, answers=finder)
    without, plain = decoder.decode(_TEXTS), decoder.decode_plain(_TEXTS)
    assert found.texts == without.texts == plain.texts
    calls = [x.statistics['target_calls'] for x in (found, without)]
    assert calls[0] < calls[1]

  def test_nothing_is_found(self, decoder, store):
    finder = answers.Finder(decoder.tokens, store, min_similarity=1.0)
    text = 'Mann Mann a a'
    request, _ = decoder.make_request([text])
    found = finder(request)
    assert (found.hints < 0).all()
    texts = decoder.decode([text], answers=finder).texts
    assert texts == decoder.decode_plain([text]).texts

  def test_own_hints_come_first(self, decoder, store, outputs):
    request, _ = decoder.make_request(_TEXTS[:2], hints=[['geht', 'a'], None])
    found = answers.Finder(decoder.tokens, store)(request)
    encode = lambda text: [*decoder.vocabulary.encode(text), 1][:_LENGTH]
    assert _hints(found) == [
        [encode('geht'), encode('a'), encode(outputs[0])],
        [encode(outputs[1])],
    ]

  def test_row_that_only_pads_finds_nothing(self, decoder, store):
    request, _ = decoder.make_request(_TEXTS[:2])
    tokens = request.inputs.at[1].set(-1)
    finder = answers.Finder(decoder.tokens, store, min_similarity=-1.0)
    found = finder(request.replace(inputs=tokens))
    assert [len(each) for each in _hints(found)] == [1, 0]

  def test_one_width(self, decoder, store):
    """Requests with an answer and without have hints of one shape."""
    finder = answers.Finder(decoder.tokens, store, min_similarity=0.999)
    shapes = set()
    for text in (*_TEXTS, 'Mann Mann a a'):
      request, _ = decoder.make_request([text])
      shapes.add(jax.tree.map(jnp.shape, finder(request).hints))
    assert len(shapes) == 1

  @pytest.mark.parametrize('surplus', [0, 9])
  def test_answer_without_an_end(self, decoder, embedder, surplus):
    """One that was truncated, or is of a decoder of longer outputs."""
    store = answers.Store(embedder)
    ids = [3 + i % 5 for i in range(_LENGTH + surplus)]
    store.add(_TEXTS[:1], ['cut'], [ids])
    request, _ = decoder.make_request(_TEXTS[:1])
    found = answers.Finder(decoder.tokens, store)(request)
    assert _hints(found) == [[ids[:_LENGTH]]]

  def test_refused(self, decoder, embedder, store):
    other = answers.Embedder(tiny.model(_CONFIG), decoder.vocabulary, _INPUTS)
    drafter = draft_model_source.from_model(tiny.model(_CONFIG, noise=0.1))
    no_hints = decoder.tokens.with_drafter(drafter, 2)
    for message, tokens, refused in (
        ('is empty', decoder.tokens, answers.Store(embedder)),
        ('the target of the decoder', decoder.tokens, answers.Store(other)),
        ('configs/drafters/lookup.gin', no_hints, store),
    ):
      with pytest.raises(ValueError, match=message):
        answers.Finder(tokens, refused)
