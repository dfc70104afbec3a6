# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of loading models, and of the sizes that parameters state."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.families import t5_checkpoints
from speculative_t5x.speculation import contracts
from tests import live_bytes
from tests import tiny
from tests.loading.checkpoints import madlad_test
from tests.loading.checkpoints import steps


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('model')
  checkpoints.save(folder, 3, tiny.params(tiny.config()))
  return folder


@pytest.mark.parametrize('merged', [True, False])
def test_deferred(folder, merged):
  """All but the weights is known before they are read, once."""
  source = dataclasses.replace(
      models.find_model(checkpoints.open(folder)), merged=merged
  )
  found, loaded = source.deferred(), source.load()
  for name in ('config', 'num_params', 'checkpoint', 'mesh', 'special_ids'):
    assert getattr(found, name) == getattr(loaded, name)
  assert found.describe() == loaded.describe()
  assert 'params' not in vars(found)
  assert found.params is found.params
  jax.tree.map(np.testing.assert_array_equal, found.params, loaded.params)


@pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
def test_loaded_params_are_prepared_in_the_networks_dtype(folder, dtype):
  config = tiny.config(dtype=dtype)
  model = models.load_model(folder, config)
  params = jax.tree.map(lambda x: x.astype(dtype), tiny.params(config))
  expected = models.make_model(config, params)
  assert model.config == expected.config
  jax.tree.map(np.testing.assert_array_equal, model.params, expected.params)
  dtypes = {x.dtype for x in jax.tree.leaves(model.params)}
  assert dtypes == {jnp.dtype(dtype)}


_TIED = {'mlp_activations': ('relu',), 'logits_via_embedding': True}


def test_of_parameters_in_memory():
  config, ids = tiny.config(), contracts.SpecialIds(7, padding=3)
  params = tiny.params(config)
  model = models.Model.of(config, params, ids)
  expected = models.make_model(config, params)
  jax.tree.map(np.testing.assert_array_equal, model.params, expected.params)
  assert (model.config, model.num_params) == (
      expected.config, expected.num_params
  )  # fmt: skip
  # A T5 begins with something.
  start = config.special_ids.start
  assert model.special_ids == dataclasses.replace(ids, start=start)
  params['decoder']['logits_dense']['kernel'] = jnp.zeros((3, 4))
  del params['encoder']['encoder_norm']
  with pytest.raises(ValueError, match=r'(?s)encoder_norm.*logits_dense') as e:
    models.Model.of(config, params)
  assert '\n' not in str(e.value)


def test_of_a_network_that_prepares_nothing():
  """Its parameters are taken as they are, and what it lacks is named."""
  network = types.SimpleNamespace(
      name='own', vocab_size=3, dtype='float32', start=print, decode=print,
      special_ids=contracts.SpecialIds(1), reads_features=False,
  )  # fmt: skip
  params = {'w': np.ones((2, 3))}
  with pytest.raises(ValueError, match='ends_inputs'):
    models.Model.of(network, params)
  network.ends_inputs = False
  model = models.Model.of(network, params)
  assert (model.config, model.params) == (network, params)
  assert (model.num_params, model.special_ids) == (6, network.special_ids)


class TestPeakWhileLoading:
  """It is little above the weights that are counted before they are read."""

  @pytest.mark.parametrize(
      'overrides', [{}, _TIED | {'dtype': jnp.bfloat16}], ids=['T5 1.1', '1.0']
  )
  @pytest.mark.parametrize('layout', checkpoints.Layout)
  def test_weights_and_the_parts_of_one_kernel(
      self, tmp_path, layout, overrides
  ):
    config = tiny.config(**overrides)
    steps.write(layout, tmp_path, tiny.params(config), config)
    with live_bytes.follow() as peak:
      model = models.load_model(tmp_path, config)
    (found,) = peak.values()
    held = sum(x.nbytes for x in jax.tree.leaves(model.params))
    layer = model.params['decoder']['layers_0']
    assert found - held <= sum(x.nbytes for x in jax.tree.leaves(layer))
    workload = memory.Workload(memory.Lengths(1, 1, gamma=1), 1)
    assert held < memory.of_model(config, workload)


def test_description():
  """The name is the end of the path, and a tied head counts once."""
  config = tiny.config(num_encoder_layers=1, logits_via_embedding=True)
  params = tiny.params(config)
  path = 'gs://bucket/t5_base/checkpoint_1000'
  model = dataclasses.replace(
      models.make_model(config, params), checkpoint=path
  )
  described = model.describe()
  assert described == descriptions.ModelDescription(
      name='t5_base/checkpoint_1000',
      checkpoint=path,
      num_params=sum(x.size for x in jax.tree.leaves(params)),
      dtype='float32',
  )
  described = tiny.model(config).describe()
  assert described.name is described.checkpoint is None


def vocabulary(eos_id, num_ids=24, num_pieces=24):
  """Return the sizes of a vocabulary with sentinels."""
  pieces, whole = (
      types.SimpleNamespace(
          name='of a task', num_ids=x, num_pieces=num_pieces, eos_id=eos_id
      )
      for x in (num_pieces, num_ids)
  )
  whole.within = lambda width: whole if num_ids <= width else pieces
  return whole


class TestSpecialIds:

  def test_t5x_takes_the_vocabulary_s_end(self, folder):
    opened = checkpoints.open(folder)
    found = models.find_model(opened)
    bound = models.find_model(opened, vocabulary=vocabulary(7))
    assert found.special_ids == contracts.SpecialIds(1, 0, 0)
    assert bound.special_ids == contracts.SpecialIds(7, 0, 0)
    assert bound.load().special_ids == bound.special_ids

  def test_hugging_face_states_its_own(self, tmp_path):
    madlad_test.write(tmp_path, madlad_test.tensors())
    opened = checkpoints.open(tmp_path)
    found = models.find_model(opened, vocabulary=vocabulary(2))
    assert found.load().special_ids == madlad_test.IDS
    with pytest.raises(
        vocabularies.VocabularyError,
        match='of a task has end-of-sequence id 1, the target 2',
    ):
      models.find_model(opened, vocabulary=vocabulary(1))


def fit(num_pieces, num_ids, target, draft, **options):
  """Fit a vocabulary with sentinels to models of so many logits."""
  target, draft = (
      models.Found(tiny.config(vocab_size=size))
      for size in (target, draft)
  )
  target = dataclasses.replace(target, **options)
  whole = vocabulary(1, num_ids, num_pieces)
  return models.fit_vocabulary(whole, target, [draft]).num_ids


class TestVocabularyFits:

  @pytest.mark.parametrize(
      ('num_pieces', 'num_ids', 'target', 'draft'),
      [
          (24, 124, 130, 130),
          (24, 124, 124, 24),  # the draft never proposes sentinels
          (24, 124, 123, 130),  # the target has no logits for them
          (24, 24, 24, 24),
          (32_000, 32_100, 32_128, 32_128),  # T5, Flan-T5
          (32_000, 32_000, 32_128, 32_128),  # from a file without sentinels
          (250_000, 250_100, 250_112, 250_112),  # mT5
          (256_000, 256_300, 256_384, 256_384),  # umT5
          (259, 384, 384, 384),  # ByT5
          (32_000, 32_100, 32_100, 32_100),  # CodeT5
          (4_000, 4_000, 4_096, 4_096),  # the Multi30k pair
      ],
  )
  def test_widths(self, num_pieces, num_ids, target, draft):
    expected = num_ids if num_ids <= target else num_pieces
    assert fit(num_pieces, num_ids, target, draft) == expected

  @pytest.mark.parametrize(
      ('target', 'draft', 'refused'),
      [
          (2047, 2048, 'target only'),
          (2148, 2047, 'draft only'),
          (4096, 2148, 'target more than 512 beyond'),
          (2148, 4096, 'draft more than 512 beyond'),
      ],
  )
  def test_of_another_family(self, target, draft, refused):
    with pytest.raises(vocabularies.VocabularyError, match=f'the {refused}'):
      fit(2048, 2148, target, draft)
    if 'more' in refused:
      fit(2048, 2148, target, draft, max_padded_ids=1948)


# All sizes differ, so that none can be mistaken for another.
_SIZES = dict(
    vocab_size=60,
    emb_dim=36,
    num_heads=3,
    num_encoder_layers=4,
    num_decoder_layers=2,
    head_dim=5,
    mlp_dim=28,
)


def _specs(**overrides):
  config = tiny.config(**(_SIZES | overrides))
  return checkpoints.flatten(models.abstract_params(config))


class TestReadConfig:

  @pytest.mark.parametrize(
      'overrides',
      [
          {},
          {'logits_via_embedding': True},
          {'mlp_activations': ('relu',)},
          {'mlp_activations': ('relu',), 'logits_via_embedding': True},
          {'num_decoder_layers': 11},
      ],
  )
  def test_all_sizes(self, overrides):
    config = tiny.config(**(_SIZES | overrides))
    found = t5_checkpoints.of_shapes(_specs(**overrides))
    assert found == config

  @pytest.mark.parametrize(
      'name, shape',
      [
          ('token_embedder/embedding', None),
          ('decoder/relpos_bias/rel_embedding', None),
          ('decoder/layers_0/self_attention/query/kernel', (36, 3, 5)),
          ('decoder/relpos_bias/rel_embedding', (4, 32)),  # of 15 columns
          ('decoder/layers_0/mlp/wi_2/kernel', (36, 28)),
      ],
  )
  def test_parameters_that_t5_does_not_have(self, name, shape):
    specs = _specs()
    specs.pop(name, None)
    if shape:
      specs[name] = jax.ShapeDtypeStruct(shape, jnp.float32)
    named = name.partition('/wi')[0]
    message = f'{named}.* is not a T5'
    with pytest.raises(checkpoints.CheckpointError, match=message):
      t5_checkpoints.of_shapes(specs)
