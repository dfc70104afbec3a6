# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of trees made of a checkpoint's: rearranged, or cut smaller."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from tests import tiny


def logits(config, params):
  rng = np.random.default_rng(1)
  inputs, outputs = rng.integers(2, 16, (2, 2, 6))
  return config.score(params, inputs, outputs)


T5_1_0 = {'mlp_activations': ('relu',), 'logits_via_embedding': True}


def prepare_and_merge(config, params):
  model = models.make_model(config, params)
  return model.config, model.params


@pytest.mark.parametrize('prepare', [t5_preparation.prepare, prepare_and_merge])
@pytest.mark.parametrize(
    'overrides',
    [{}, {'mlp_activations': ('relu',)}, T5_1_0, {'num_heads': 3}],
)
def test_logits_are_the_same(overrides, prepare):
  config = tiny.config(**overrides)
  params = tiny.params(config)
  prepared_config, prepared = prepare(config, params)
  np.testing.assert_allclose(
      logits(prepared_config, prepared), logits(config, params), atol=2e-5
  )


@pytest.mark.parametrize('overrides', [{}, T5_1_0])
def test_separate_undoes_it(overrides):
  """To the last bit; what was not merged is not copied."""
  config = tiny.config(**overrides)
  params = tiny.params(config)
  model = models.make_model(config, params)
  found = t5_preparation.separate(model.config, model.params)
  jax.tree.map(np.testing.assert_array_equal, found, jax.device_get(params))
  own, shared = found['token_embedder'], model.params['token_embedder']
  assert own['embedding'] is shared['embedding']
  model = models.make_model(config, params, merged=False)
  found = jax.tree.leaves(t5_preparation.separate(model.config, model.params))
  assert {*map(id, found)} <= {*map(id, jax.tree.leaves(model.params))}


@pytest.mark.parametrize(('platform', 'block'), [('cpu', 1), ('tpu', 4)])
def test_min_block_is_four_on_a_tpu(platform, block):
  prepared = tiny.config().prepared(platform, merged=False)
  assert prepared.min_block == block


@pytest.mark.parametrize('overrides', [{}, T5_1_0])
def test_all_but_the_head_are_cast_to_the_networks_dtype(overrides):
  """T5X multiplies the head in float32, at the precision of the checkpoint."""
  config = tiny.config(dtype=jnp.bfloat16, **overrides)
  _, prepared = prepare_and_merge(config, tiny.params(config))
  head = prepared['decoder'].pop('logits_dense')['kernel']
  assert head.dtype == jnp.float32
  assert {x.dtype.name for x in jax.tree.leaves(prepared)} == {'bfloat16'}


_CONFIG = t5.T5Config(
    vocab_size=16,
    emb_dim=12,
    num_heads=3,
    num_encoder_layers=2,
    num_decoder_layers=3,
    head_dim=4,
    mlp_dim=10,
    dropout_rate=0.0,
)


@pytest.fixture(scope='module')
def params():
  rng = np.random.default_rng(0)
  return jax.tree.map(
      lambda x: rng.normal(0, 0.5, x.shape).astype(np.float32),
      models.abstract_params(_CONFIG),
  )


def _edit(params, edit):
  """Return parameters changed by a function of their path and value."""
  name = lambda path: '/'.join(key.key for key in path)
  return jax.tree_util.tree_map_with_path(
      lambda path, x: edit(name(path), np.array(x)), params
  )


def _cut(params, decoder_layers=range(3), **options):
  """Return the logits of what is cut out, whose parameters have its form."""
  config, cut = _CONFIG.cut(params, decoder_layers=decoder_layers, **options)
  shapes = lambda tree: jax.tree.map(jnp.shape, tree)
  assert shapes(dict(cut)) == shapes(models.abstract_params(config))
  return logits(config, cut)


class TestTakeLayers:

  def test_layers_that_add_nothing_are_left_out(self, params):
    idle = ('encoder/layers_0/', 'decoder/layers_1/')
    is_last = lambda name: '/out/' in name or '/wo/' in name

    def silence(name, x):
      return 0 * x if name.startswith(idle) and is_last(name) else x

    silenced = _edit(params, silence)
    expected = logits(_CONFIG, silenced)
    cut = _cut(silenced, [0, 2], encoder_layers=[1])
    np.testing.assert_allclose(cut, expected, atol=1e-5)
    other = _cut(silenced, [0, 1], encoder_layers=[1])
    assert not np.allclose(other, expected, atol=1e-2)

  def test_order_counts(self, params):
    assert not np.allclose(
        _cut(params, [0, 2]), _cut(params, [2, 0]), atol=1e-2
    )

  @pytest.mark.parametrize('layers', [[], [0, 3], [-1], [0.5]])
  def test_missing_layer(self, params, layers):
    with pytest.raises(ValueError, match='decoder_layers must .* 0 to 2'):
      _CONFIG.cut(params, decoder_layers=layers)


class TestNarrow:

  def test_what_adds_nothing_is_left_out(self, params):
    """One head of each attention and some columns of each block are 0."""

    def silence(name, x):
      if name.endswith('out/kernel'):
        # Self-attention shares the bias, so one head of all layers is idle.
        head = 2 if 'encoder_decoder' in name else 1
        x[4 * head : 4 * head + 4] = 0
      if name.endswith('wo/kernel'):
        x[[0, 4, 7]] = 0
      return x

    silenced = _edit(params, silence)
    np.testing.assert_allclose(
        _cut(silenced, num_heads=2, mlp_dim=7),
        logits(_CONFIG, silenced),
        atol=1e-5,
    )

  def test_large_ones_stay(self, params):
    """Heads and columns scaled down by 100 hardly matter, and are left out."""

    def shrink(name, x):
      if name.endswith('value/kernel'):
        x[:, :4] *= 1e-2
      if name.endswith('wi_1/kernel'):
        x[:, 3] *= 1e-2
      return x

    shrunk = _edit(params, shrink)
    _, cut = _CONFIG.cut(
        shrunk, decoder_layers=range(3), num_heads=2, mlp_dim=9
    )
    kernel = lambda tree: tree['decoder']['layers_0']['mlp']['wo']['kernel']
    np.testing.assert_array_equal(
        kernel(cut), np.delete(kernel(shrunk), 3, axis=0)
    )
    values = lambda tree: tree['encoder']['layers_1']['attention']['value']
    np.testing.assert_array_equal(
        values(cut)['kernel'], values(shrunk)['kernel'][:, 4:]
    )

  @pytest.mark.parametrize('size', [('num_heads', 0), ('mlp_dim', 11)])
  def test_out_of_range(self, params, size):
    with pytest.raises(ValueError, match=f'{size[0]} must be .* {size[1]}'):
      _CONFIG.cut(params, decoder_layers=[0], **dict([size]))
