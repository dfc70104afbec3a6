# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the model of a decoder alone decodes like T5X's, and is it."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
import seqio
from t5x import decoding
from t5x import models
from t5x.examples.decoder_only import network
import tensorflow as tf

from speculative_t5x import t5x_guest
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models as models_lib
from speculative_t5x.speculation import contracts
from tests import tiny_decoders
from tests.t5x_guest import limits
from tests.t5x_guest import tiny_decoder_pair as tiny
from tests.t5x_guest import tiny_pair

CONFIGS = pytest.mark.parametrize(
    'config', [tiny.CAUSAL, tiny.PREFIX], ids=['causal', 'prefix']
)
GREEDY = {'temperature': 0.0, 'rescale_log_probs': False}


def predict(model, batch, params=None, **kwargs):
  """Return sequences and auxiliary values, compiled as in T5X."""
  call = functools.partial(model.predict_batch_with_aux, **kwargs)
  return jax.device_get(jax.jit(call)(params or tiny.state(model), batch))


def of_t5x(config, batch, **options):
  """Return what T5X's own model and sampler return."""
  return predict(
      tiny.of_target(config),
      batch,
      tiny.PARAMS,
      decoder_params=GREEDY | options,
  )


def assert_same(found, expected):
  (sequences, aux), (right, right_aux) = found, expected
  np.testing.assert_array_equal(sequences, right)
  np.testing.assert_allclose(aux['scores'], right_aux['scores'], atol=3e-4)


@CONFIGS
@pytest.mark.parametrize(
    ('sampler', 'rows'),
    [(t5x_guest.speculative_sample, 1), (t5x_guest.speculative_sample, 9),
     (t5x_guest.plain_sample, 9)],
)  # fmt: skip
def test_argmax_is_t5xs(config, sampler, rows):
  """Of unequal prompts, of which some contain the end of sequence."""
  batch = tiny.batch(rows)
  model = tiny.model(config, functools.partial(sampler, **GREEDY))
  found = predict(model, batch)
  assert_same(found, of_t5x(config, batch))
  room = tiny.LENGTH + 1 - batch['decoder_causal_attention'].sum(axis=1)
  assert (found[1]['tokens'] <= room).all()
  assert (found[1]['tokens'] == room).any()
  if rows > 1:
    assert (found[1]['tokens'] < room).any()


def test_a_head_on_last_features():
  """Prompts of a prefix-LM, which are read at once, show none."""
  sizes = dataclasses.replace(tiny.CAUSAL, emb_dim=16, num_layers=1)
  head = sizes.on_last_features(tiny.CAUSAL)
  draft = models_lib.make_model(
      head,
      tiny_decoders.params(head),
      special_ids=contracts.SpecialIds(tiny.END, padding=0),
      merged=False,
  )
  sampler = functools.partial(t5x_guest.speculative_sample, **GREEDY)
  kwargs = {'drafter': drafters.DraftModel(draft)}
  batch = tiny.batch(9)
  found = predict(tiny.model(tiny.CAUSAL, sampler, **kwargs), batch)
  assert_same(found, of_t5x(tiny.CAUSAL, batch))
  assert found[1]['drafted'].sum() > 0
  with pytest.raises(ValueError, match='needs a target whose prompts are caus'):
    predict(tiny.model(tiny.PREFIX, sampler, **kwargs), batch)


@pytest.mark.exhaustive
@CONFIGS
@pytest.mark.parametrize(
    'drafter',
    [None, drafters.Lookup(), drafters.EarlyExit(2)],
    ids=['model', 'lookup', 'early exit'],
)
def test_500_prompts(config, drafter):
  """No text differs from those of T5X's own sampler."""
  kwargs = {} if drafter is None else {'drafter': drafter}
  sampler = functools.partial(t5x_guest.speculative_sample, **GREEDY)
  model = tiny.model(config, sampler, **kwargs)
  theirs = tiny.of_target(config)
  ours = jax.jit(model.predict_batch_with_aux)
  right = jax.jit(
      lambda *args: theirs.predict_batch_with_aux(
          *args, decoder_params=dict(GREEDY)  # T5X adds to it
      )
  )
  counts = {'tokens': 0, 'target_calls': 0}
  for first in range(0, 500, 50):
    batch = tiny.batch(50, first)
    found = jax.device_get(ours(tiny.state(model), batch))
    assert_same(found, jax.device_get(right(tiny.PARAMS, batch)))
    for name in counts:
      counts[name] += found[1][name].sum()
  assert counts['target_calls'] < counts['tokens']


def test_limits_count_from_the_end_of_the_prompt():
  batch = tiny.batch(limits.EXAMPLES, first=3)

  def decode(model, params):
    return jax.jit(
        lambda steps: model.predict_batch_with_aux(
            params, batch, decoder_params=GREEDY | {'max_decode_steps': steps}
        )
    )

  theirs = decode(tiny.of_target(tiny.CAUSAL), tiny.PARAMS)
  model = tiny.model(tiny.CAUSAL)
  ours = decode(model, tiny.state(model))
  for steps in ([3, 3, 3], [0, 8, 5], [0, 0, 0], [24, 24, 24]):
    (expected, _), (found, _) = (
        call(np.array(steps, np.int32)) for call in (theirs, ours)
    )
    np.testing.assert_array_equal(found, expected)
  assert np.any(expected[1, 8:])


def test_samples():
  """One depends on its example alone; of several, the best is last."""
  sampler = functools.partial(t5x_guest.speculative_sample, topk=40)
  params = models.DecoderParams(return_all_decodes=True, num_decodes=4)
  model = tiny.model(tiny.PREFIX, sampler, default_decoder_params=params)
  every, aux = predict(model, tiny.batch(6))
  assert every.shape == (6, 4, tiny.LENGTH)
  assert (np.diff(aux['scores'], axis=1) >= 0).all()
  assert np.any(every[:, 0] != every[:, -1])
  best, _ = predict(model, tiny.batch(1, first=4), return_all_decodes=False)
  np.testing.assert_array_equal(best[0], every[4, -1])


@CONFIGS
def test_everything_else_is_t5xs(config):
  """Its own decode functions, scores and loss see the target alone."""
  batch, rng = tiny.batch(3, first=1), jax.random.PRNGKey(0)
  for decode_fn in (decoding.temperature_sample, decoding.beam_search):
    options = {'num_decodes': 2, 'return_all_decodes': True}
    theirs = tiny.of_target(config, decode_fn)
    expected = theirs.predict_batch_with_aux(
        tiny.PARAMS, batch, rng=rng, **options
    )
    model = tiny.model(config, decode_fn)
    found = model.predict_batch_with_aux(
        tiny.state(model), batch, rng=rng, **options
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)
  params = tiny.state(model)
  np.testing.assert_array_equal(
      model.score_batch(params, batch), theirs.score_batch(tiny.PARAMS, batch)
  )
  np.testing.assert_array_equal(
      model.loss_fn(params, batch, None)[0],
      theirs.loss_fn(tiny.PARAMS, batch, None)[0],
  )


class TestConverter:

  LENGTHS = {'inputs': 5, 'targets': 4}

  def features(self):
    examples = [
        {'inputs': [7, 8, 1], 'targets': [9, 1]},
        {'inputs': [5, 1], 'targets': [6, 4, 1]},
    ]
    shapes = {name: tf.TensorSpec([None], tf.int32) for name in examples[0]}
    return tf.data.Dataset.from_generator(
        lambda: iter(examples), output_signature=shapes
    )

  @pytest.mark.parametrize('pack', [False, True])
  def test_features_are_seqios_with_ids(self, pack):
    ours = t5x_guest.DecoderExampleIdConverter(pack=pack)
    theirs = seqio.DecoderFeatureConverter(pack=pack)
    own = [] if pack else ['example_id']
    for found, expected in zip(
        ours(self.features(), self.LENGTHS).as_numpy_iterator(),
        theirs(self.features(), self.LENGTHS).as_numpy_iterator(),
        strict=True,
    ):
      assert found.keys() == {*expected, *own}
      for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)

  def test_ids_are_those_of_an_encoder_decoder(self):
    ids = [
        [int(x['example_id']) for x in converter(pack=False)(
            self.features(), self.LENGTHS
        ).as_numpy_iterator()]
        for converter in (
            t5x_guest.DecoderExampleIdConverter, t5x_guest.ExampleIdConverter
        )
    ]  # fmt: skip
    assert ids[0] == ids[1] and len(set(ids[0])) == 2

  def test_targets_alone_are_scored(self):
    converter = t5x_guest.DecoderExampleIdConverter(pack=False)
    lengths = {'targets': 4}
    (first, _) = converter(self.features(), lengths).as_numpy_iterator()
    model = tiny.model(tiny.CAUSAL)
    batch = {name: value[None] for name, value in first.items()}
    assert np.isfinite(model.score_batch(tiny.state(model), batch)).all()
    with pytest.raises(ValueError, match='decoder_causal_attention'):
      predict(model, batch)


class TestRefusals:

  def test_other_modules(self):

    class Other(network.DecoderWrapper):
      pass

    for module in (Other(tiny.module(tiny.CAUSAL).config),
                   tiny_pair.modules()[0]):
      theirs = models.DecoderOnlyModel(
          module, tiny.VOCABULARY, tiny_pair.OPTIMIZER
      )
      with pytest.raises(ValueError, match='only t5x.examples.decoder_only'):
        t5x_guest.SpeculativeDecoderOnlyModel(
            theirs, drafter=drafters.Lookup(), gamma=3
        )
