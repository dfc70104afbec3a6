# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that T5X's jobs take every source of drafters, as this package's do."""

import dataclasses

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seqio
from t5x import decoding
from t5x import models as t5x_models
from t5x import utils

from speculative_t5x import t5x_guest
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import tables
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import early_exit_source
from speculative_t5x.loading.drafters import in_order_source
from speculative_t5x.loading.drafters import lookup_source
from speculative_t5x.loading.drafters import shared_encoder_source
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.drafters import table_source
from speculative_t5x.t5x_guest import named_params
from speculative_t5x.tasks import bulletins
from tests import tiny
from tests import vocabulary_files
from tests.t5x_guest import tiny_pair

TARGET, DRAFT = tiny_pair.configs()
DECODER = dataclasses.replace(
    DRAFT, num_encoder_layers=0, encoder_dim=TARGET.emb_dim, emb_dim=16
)
BATCH = tiny_pair.batch(5)
SHAPES = {
    'encoder_input_tokens': BATCH['encoder_input_tokens'].shape,
    'decoder_input_tokens': BATCH['decoder_input_tokens'].shape,
}


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Returns checkpoints of all kinds, and counts of tokens."""
  folder = tmp_path_factory.mktemp('drafters')
  checkpoints.save(folder / 'target', 3, tiny.params(TARGET))
  checkpoints.save(folder / 'model', 1, tiny.params(DRAFT))
  checkpoints.save(folder / 'decoder', 1, tiny.params(DECODER))
  head = TARGET.take_head(jax.tree.map(lambda x: 2 * x, tiny.params(TARGET)))
  checkpoints.save(folder / 'head', 1, head)
  rows = [np.trim_zeros(x).tolist() for x in np.asarray(tiny.t5x_tokens(9, 9))]
  counts = token_counts.count(rows, num_pieces=64, eos_id=1, num_kept=4)
  (folder / 'counts').mkdir()
  path = folder / 'counts' / token_counts.FILE_NAME
  path.write_bytes(counts.to_bytes())
  return folder


def draft_model(folder, **kwargs):
  return draft_model_source.FromCheckpoint(folder / 'model', **kwargs)


# Takes the folder and returns the source, by its kind in run records.
SOURCES = {
    'shared_encoder': lambda folder: shared_encoder_source.FromCheckpoint(
        folder / 'decoder'
    ),
    'short vocabulary': lambda folder: draft_model(
        folder, short_vocabulary=folder / 'counts', short_vocabulary_size=9
    ),
    'early_exit': lambda folder: early_exit_source.OfTarget(1),
    'exit head': lambda folder: early_exit_source.FromCheckpoint(
        1, folder / 'head'
    ),
    'bigram': lambda folder: table_source.FromFile(folder / 'counts'),
    'uniform': lambda folder: source.WithoutParameters(
        tables.make_uniform, 'uniform'
    ),
    'lookup then model': lambda folder: in_order_source.FromSources(
        [lookup_source.FromContext(), draft_model(folder)]
    ),
}


def restored(model, folder):
  """Returns the parameters that T5X's eval and infer jobs restore."""
  partitioner = tiny_pair.partitioner()
  restore = lambda **kwargs: t5x_guest.PairRestorer(model=model, **kwargs)
  state, _ = utils.create_checkpoint_manager_and_restore(
      utils.TrainStateInitializer(
          None, model.get_initial_variables, SHAPES, partitioner
      ),
      partitioner,
      utils.RestoreCheckpointConfig(
          path=str(folder / 'target'), checkpoint_manager_cls=restore
      ),
      str(folder / 'target'),
      None,
      use_orbax=True,
  )
  return state.params


@pytest.fixture(scope='module')
def greedy():
  """Returns what T5X's own sampler writes."""
  model = t5x_models.EncoderDecoderModel(
      tiny_pair.transformer(TARGET),
      tiny_pair.VOCABULARY,
      tiny_pair.VOCABULARY,
      tiny_pair.OPTIMIZER,
      decode_fn=decoding.temperature_sample,
  )
  return model.predict_batch(flax.core.freeze(tiny.params(TARGET)), BATCH)


def own_samples(drafting, temperature):
  """Returns what this package's own decoder samples."""
  decoder = token_decoder.TokenDecoder(
      tiny.model(TARGET), drafting, gamma=3, length=tiny_pair.LENGTH
  )
  tokens = BATCH['encoder_input_tokens']
  return decoder.speculative(
      tiny.request(tokens, tiny_pair.LENGTH, temperature, seed=7)
  )


@pytest.mark.parametrize('kind', SOURCES)
def test_texts_are_t5xs_and_samples_are_this_packages(kind, folder, greedy):
  model = tiny_pair.model(drafter=SOURCES[kind](folder))
  params = restored(model, folder)
  assert ('draft' in params) == (kind not in ('early_exit', 'uniform'))

  @jax.jit
  def predict(params, temperature):
    options = {'temperature': temperature, 'topk': 0, 'seed': jnp.int32(7)}
    return model.predict_batch_with_aux(params, BATCH, decoder_params=options)

  found, aux = predict(params, 0.0)
  np.testing.assert_array_equal(found, greedy)
  assert aux['drafted'].sum() > 0
  samples, aux = predict(params, 0.9)
  expected = own_samples(model.drafting, 0.9)
  np.testing.assert_array_equal(samples, expected.sequences)
  np.testing.assert_array_equal(aux['target_calls'], expected.num_calls)
  assert (samples != greedy).any()


class TestHints:

  def test_reach_the_drafter(self, greedy):
    """The hint of each example is its output, which is copied."""
    model = tiny_pair.model(
        drafter=lookup_source.FromContext(only_hints=True), hints_length=20
    )
    params = {'target': tiny.params(TARGET)}
    aux = {
        name: model.predict_batch_with_aux(params, batch)[1]
        for name, batch in [
            ('with', {**BATCH, 'hints': jnp.where(greedy > 0, greedy, -1)}),
            ('without', BATCH),
        ]
    }
    tokens, calls = aux['with']['tokens'], aux['with']['target_calls']
    assert calls.sum() < 0.35 * tokens.sum()  # with 3 draft tokens per call
    assert aux['without']['drafted'].sum() == 0

  def test_drafter_that_reads_none(self):
    batch = {**BATCH, 'hints': jnp.zeros((5, 32), jnp.int32)}
    model = tiny_pair.model()
    with pytest.raises(ValueError, match='does not read hints'):
      model.predict_batch(tiny_pair.state(model), batch)

  def test_feature_of_the_model(self):
    converter = tiny_pair.model(hints_length=20).FEATURE_CONVERTER_CLS(
        pack=False
    )
    assert converter.MODEL_FEATURES.keys() >= {'hints', 'example_id'}


class TestAxes:
  """T5X partitions the parameters of drafters that are to be partitioned."""

  def test_of_drafters_in_order(self):
    loaded = draft_model_source.from_model(tiny.model(DRAFT))
    first = jax.tree.leaves(loaded.params)[0]
    drafting = in_order_source.from_drafters([
        source.Drafting(lambda target, gamma: None, loaded.description),
        dataclasses.replace(loaded, axes={'a': jax.P('vocab', 'embed')},
                            params={'a': first}),
        dataclasses.replace(loaded, params={'b': {'c': first}}, models=()),
    ])  # fmt: skip
    found = flax.traverse_util.flatten_dict(
        named_params.axes(drafting), sep='/'
    )
    names = {name: metadata.names for name, metadata in found.items()}
    assert names == {
        '1/a_axes': ('vocab', 'embed'), '2/b/c_axes': (None,) * first.ndim
    }  # fmt: skip
    nested = named_params.nest(drafting.params)
    assert nested['2']['b']['c'] is first
    again = named_params.restore(drafting.params, flax.core.freeze(nested))
    assert again[0] is None and again[2]['b']['c'] is first


class TestRefusals:

  @pytest.mark.parametrize(
      ('drafter', 'said'),
      [
          (early_exit_source.OfTarget(9), 'exit_layer must be'),
          (
              draft_model_source.FromCheckpoint('typo'),
              'DRAFT_CHECKPOINT_PATH.*typo',
          ),
      ],
  )
  def test_drafter_that_does_not_fit(self, drafter, said):
    with pytest.raises(ValueError, match=said):
      restored(tiny_pair.model(drafter=drafter), None)

  def test_draft_of_other_sizes(self, folder):
    wide = dataclasses.replace(DRAFT, emb_dim=DRAFT.emb_dim + 8)
    drafter = draft_model(folder, config=wide)
    with pytest.raises(checkpoints.CheckpointError, match='another network'):
      restored(tiny_pair.model(drafter=drafter), folder)

  def test_draft_model_of_another_vocabulary(self, folder, tmp_path):
    own = seqio.SentencePieceVocabulary(str(bulletins.VOCABULARY_FILE))
    path = str(vocabulary_files.train(tmp_path / 'other.model'))
    other = seqio.SentencePieceVocabulary(path)
    module = tiny_pair.transformer(DRAFT)
    for drafter in (
        draft_model(folder, vocabulary_file=path),
        t5x_guest.DraftModule(module, other, checkpoint_path=folder / 'model'),
    ):
      with pytest.raises(vocabularies.VocabularyError, match='pieces'):
        _ = tiny_pair.model(drafter=drafter, output_vocabulary=own).drafting
