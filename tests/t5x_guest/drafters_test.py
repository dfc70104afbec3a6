# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that T5X's jobs take every source of drafters, as this package's do."""

import dataclasses
import functools
import pathlib

import flax
import gin
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seqio
import t5x
from t5x import utils

from speculative_t5x import t5x_guest
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import in_order_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.research import whole_batches
from speculative_t5x.t5x_guest import named_params
from speculative_t5x.tasks import bulletins
from tests import process_state
from tests import tiny
from tests import vocabulary_files
from tests.t5x_guest import tiny_pair

TARGET, DRAFT = tiny_pair.configs()
DECODER = dataclasses.replace(
    DRAFT, num_encoder_layers=0, encoder_dim=TARGET.emb_dim, emb_dim=16
)
HEAD = dataclasses.replace(DECODER, feature_dim=TARGET.emb_dim)
BLOCK_HEAD = dataclasses.replace(DECODER, num_masks=4, recurrence_dim=3)
BATCH = tiny_pair.batch(5)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return checkpoints of all kinds, and counts of tokens."""
  folder = tmp_path_factory.mktemp('drafters')
  checkpoints.save(folder / 'target', 3, tiny.params(TARGET))
  checkpoints.save(folder / 'model', 1, tiny.params(DRAFT))
  checkpoints.save(folder / 'decoder', 1, tiny.params(DECODER))
  checkpoints.save(folder / 'feature_head', 1, tiny.params(HEAD))
  checkpoints.save(folder / 'block_head', 1, tiny.params(BLOCK_HEAD))
  head = TARGET.take_head(jax.tree.map(lambda x: 2 * x, tiny.params(TARGET)))
  checkpoints.save(folder / 'head', 1, head)
  rows = [np.trim_zeros(x).tolist() for x in np.asarray(tiny.t5x_tokens(9, 9))]
  counts = token_counts.count(rows, num_pieces=64, eos_id=1, num_kept=4)
  (folder / 'counts').mkdir()
  path = folder / 'counts' / token_counts.FILE_NAME
  path.write_bytes(counts.to_bytes())
  return folder


def draft_model(folder, **kwargs):
  return model_drafting.DraftModel(folder / 'model', **kwargs)


# The job's own files, in place of T5X's, with the sizes of TARGET.
_JOB = """
from __gin__ import dynamic_registration
import seqio
from t5x import utils
from t5x.examples.t5 import network
from tests.t5x_guest import drafters_test

include 't5x/examples/t5/t5_1_1/base.gin'

DROPOUT_RATE = 0.0
VOCABULARY = @seqio.PassThroughVocabulary()
seqio.PassThroughVocabulary:
  size = 64
  eos_id = 1
drafters_test.job:
  model = %MODEL
  restoring = @utils.RestoreCheckpointConfig()
utils.RestoreCheckpointConfig.path = %CHECKPOINT_PATH
"""
# Gin files and macros of each drafter; paths are those of `folder`.
FILES = {
    'shared_encoder': {'DRAFT_CHECKPOINT_PATH': 'decoder'},
    'feature_head': {'DRAFT_CHECKPOINT_PATH': 'feature_head'},
    'block_head': {'DRAFT_CHECKPOINT_PATH': 'block_head'},
    'short_vocabulary': {
        'DRAFT_CHECKPOINT_PATH': 'model',
        'DRAFT_SHORT_VOCABULARY': 'counts',
        'DRAFT_SHORT_VOCABULARY_SIZE': 9,
    },
    'early_exit': {'EXIT_LAYER': 1},
    'exit_head': {'EXIT_LAYER': 1, 'DRAFT_CHECKPOINT_PATH': 'head'},
    'ngram_table': {'NGRAM_TABLE': 'counts'},
    'lookup': {},
    'lookup_then_model': {'DRAFT_CHECKPOINT_PATH': 'model'},
}


def job(model, restoring):
  """Stand for T5X's scripts, which take these two."""
  return model, restoring


def configured(name, folder):
  """Return what T5X's scripts get of a drafter's gin file."""
  path = folder / 'job.gin'
  sizes = vars(tiny_pair.transformer(TARGET).config)
  values = {k: v for k, v in sizes.items() if k not in ('parent', 'name')}
  values['dtype'] = 'float32'
  lines = [f'network.T5Config.{k} = {v!r}' for k, v in values.items()]
  path.write_text('\n'.join([_JOB, *lines]))
  is_path = lambda value: isinstance(value, str)
  settings = {'CHECKPOINT_PATH': 'target', 'TEMPERATURE': 0.9, **FILES[name]}
  found = {
      key: str(folder / value) if is_path(value) else value
      for key, value in settings.items()
  }
  gin.add_config_file_search_path(pathlib.Path(t5x.__path__[0]).parent)
  gin.parse_config_files_and_bindings(
      [str(path), f'configs/t5x/{name}.gin'],
      [f'{key} = {value!r}' for key, value in found.items()],
  )
  return gin.get_configurable(f'{__name__}.job')()


@pytest.fixture
def clean_gin():
  yield
  process_state.reset()


def restored(model, folder, config=None):
  """Return the parameters that T5X's eval and infer jobs restore."""
  restorer = functools.partial(t5x_guest.PairRestorer, model=model)
  config = config or utils.RestoreCheckpointConfig(
      path=str(folder / 'target'), checkpoint_manager_cls=restorer
  )
  return tiny_pair.restore(model, config).params


@pytest.fixture(scope='module')
def greedy():
  """Return what T5X's own sampler writes."""
  params = flax.core.freeze(tiny.params(TARGET))
  return tiny_pair.of_target().predict_batch(params, BATCH)


def own_samples(drafting, temperature):
  """Return what this package's own decoder samples."""
  decoder = token_decoder.TokenDecoder(
      tiny.model(TARGET), drafting, gamma=5, max_tokens=tiny_pair.LENGTH
  )
  tokens = BATCH['encoder_input_tokens']
  batch = tiny.batch(tokens, tiny_pair.LENGTH, temperature, seed=7)
  return whole_batches.decode(decoder, batch)


@pytest.mark.usefixtures('clean_gin')
@pytest.mark.parametrize('name', FILES)
def test_texts_are_t5xs_and_samples_are_this_packages(name, folder, greedy):
  model, config = configured(name, folder)
  params = restored(model, folder, config)
  assert ('draft' in params) == (name not in ('early_exit', 'lookup'))

  @jax.jit
  def predict(params, temperature):
    options = {'temperature': temperature, 'seed': jnp.int32(7)}
    return model.predict_batch_with_aux(params, BATCH, decoder_params=options)

  found, aux = predict(params, 0.0)
  np.testing.assert_array_equal(found, greedy)
  assert aux['drafted'].sum() > 0
  samples, aux = predict(params, 0.9)
  expected = own_samples(model.drafting, 0.9)
  np.testing.assert_array_equal(samples, expected.sequences)
  np.testing.assert_array_equal(aux['target_calls'], expected.num_calls)
  assert (samples != greedy).any()


def test_axes_of_drafters_in_order():
  loaded = model_drafting.of_model(tiny.model(DRAFT))
  first = jax.tree.leaves(loaded.params)[0]
  joined = in_order_drafting.joined([
      drafting.Drafting(lambda target, gamma: None, loaded.description),
      dataclasses.replace(loaded, axes={'a': jax.P('vocab', 'embed')},
                          params={'a': first}),
      dataclasses.replace(loaded, params={'b': {'c': first}}, models=()),
  ])  # fmt: skip
  found = flax.traverse_util.flatten_dict(named_params.axes(joined), sep='/')
  names = {name: metadata.names for name, metadata in found.items()}
  assert names == {
      '1/a_axes': ('vocab', 'embed'), '2/b/c_axes': (None,) * first.ndim
  }  # fmt: skip
  nested = named_params.nest(joined.params)
  assert nested['2']['b']['c'] is first
  again = named_params.restore(joined.params, flax.core.freeze(nested))
  assert again[0] is None and again[2]['b']['c'] is first


class TestRefusals:

  def test_draft_model_of_another_vocabulary(self, folder, tmp_path):
    own = seqio.SentencePieceVocabulary(str(bulletins.VOCABULARY_FILE))
    path = str(vocabulary_files.train(tmp_path / 'other.model'))
    other = seqio.SentencePieceVocabulary(path)
    module = tiny_pair.transformer(DRAFT)
    for drafter in (
        draft_model(folder, vocabulary_file=path),
        t5x_guest.DraftModule(module, other, checkpoint_path=folder / 'model'),
    ):
      with pytest.raises(vocabularies.VocabularyError, match='one vocabulary'):
        _ = tiny_pair.model(drafter=drafter, output_vocabulary=own).drafting
