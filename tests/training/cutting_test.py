# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of networks cut out of larger ones: what adds nothing is left out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.training import cutting

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
def network():
  rng = np.random.default_rng(0)
  params = jax.tree.map(
      lambda x: rng.normal(0, 0.5, x.shape).astype(np.float32),
      models.abstract_params(_CONFIG),
  )
  return cutting.Network(_CONFIG, params)


def _logits(network):
  rng = np.random.default_rng(1)
  inputs, targets = rng.integers(2, 16, (2, 2, 6))
  return t5_modules.Transformer(network.config).apply(
      {'params': network.params}, inputs, targets, targets, enable_dropout=False
  )


def _edit(params, edit):
  """Returns parameters changed by a function of their path and value."""
  name = lambda path: '/'.join(key.key for key in path)
  return jax.tree_util.tree_map_with_path(
      lambda path, x: edit(name(path), np.array(x)), params
  )


def _check_form(network):
  expected = models.abstract_params(network.config)
  shapes = lambda tree: jax.tree.map(jnp.shape, tree)
  assert shapes(dict(network.params)) == shapes(expected)


class TestTakeLayers:

  def test_layers_that_add_nothing_are_left_out(self, network):
    idle = ('encoder/layers_0/', 'decoder/layers_1/')
    is_last = lambda name: '/out/' in name or '/wo/' in name

    def silence(name, x):
      return 0 * x if name.startswith(idle) and is_last(name) else x

    silenced = cutting.Network(_CONFIG, _edit(network.params, silence))
    cut = cutting.take_layers(silenced, encoder=[1], decoder=[0, 2])
    _check_form(cut)
    np.testing.assert_allclose(_logits(cut), _logits(silenced), atol=1e-5)
    other = cutting.take_layers(silenced, encoder=[1], decoder=[0, 1])
    assert not np.allclose(_logits(other), _logits(silenced), atol=1e-2)

  def test_order_counts(self, network):
    one, other = (
        cutting.take_layers(network, encoder=[0, 1], decoder=layers)
        for layers in ([0, 2], [2, 0])
    )
    assert not np.allclose(_logits(one), _logits(other), atol=1e-2)

  @pytest.mark.parametrize('layers', [[], [0, 3], [-1], [0.5]])
  def test_missing_layer(self, network, layers):
    with pytest.raises(ValueError, match='decoder_layers must .* 0 to 2'):
      cutting.take_layers(network, encoder=[0], decoder=layers)


class TestNarrow:

  def test_what_adds_nothing_is_left_out(self, network):
    """One head of each attention and some columns of each block are 0."""

    def silence(name, x):
      if name.endswith('out/kernel'):
        # Self-attention shares the bias, so one head of all layers is idle.
        head = 2 if 'encoder_decoder' in name else 1
        x[4 * head : 4 * head + 4] = 0
      if name.endswith('wo/kernel'):
        x[[0, 4, 7]] = 0
      return x

    silenced = cutting.Network(_CONFIG, _edit(network.params, silence))
    cut = cutting.narrow(silenced, num_heads=2, mlp_dim=7)
    _check_form(cut)
    np.testing.assert_allclose(_logits(cut), _logits(silenced), atol=1e-5)

  def test_large_ones_stay(self, network):
    """Heads and columns scaled down by 100 hardly matter, and are left out."""

    def shrink(name, x):
      if name.endswith('value/kernel'):
        x[:, :4] *= 1e-2
      if name.endswith('wi_1/kernel'):
        x[:, 3] *= 1e-2
      return x

    shrunk = cutting.Network(_CONFIG, _edit(network.params, shrink))
    cut = cutting.narrow(shrunk, num_heads=2, mlp_dim=9)
    np.testing.assert_allclose(_logits(cut), _logits(shrunk), atol=0.5)
    full = np.asarray(
        shrunk.params['decoder']['layers_0']['mlp']['wo']['kernel']
    )
    kept = cut.params['decoder']['layers_0']['mlp']['wo']['kernel']
    np.testing.assert_array_equal(kept, np.delete(full, 3, axis=0))

  def test_nothing_to_cut(self, network):
    cut = cutting.narrow(network, num_heads=3, mlp_dim=None)
    jax.tree.map(np.testing.assert_array_equal, cut.params, network.params)

  @pytest.mark.parametrize('size', [('num_heads', 0), ('mlp_dim', 11)])
  def test_out_of_range(self, network, size):
    sizes = {'num_heads': None, 'mlp_dim': None} | dict([size])
    with pytest.raises(ValueError, match=f'{size[0]} must be .* {size[1]}'):
      cutting.narrow(network, **sizes)
