# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the prepared tree has the checkpoint's values, rearranged."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import t5_modules
from speculative_t5x.networks import t5_preparation
from tests import tiny


def logits(config, params):
  tokens = tiny.encoder_tokens(2, 6)
  apply = functools.partial(
      t5_modules.Transformer(config).apply, enable_dropout=False
  )
  return jax.jit(apply)({'params': params}, tokens, tokens, tokens)


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


def test_a_tied_head_is_stored_a_second_time():
  config = tiny.config(**T5_1_0)
  params = tiny.params(config)
  assert 'logits_dense' not in params['decoder']
  prepared_config, prepared = t5_preparation.prepare(config, params)
  np.testing.assert_array_equal(
      prepared['decoder'].pop('logits_dense')['kernel'],
      params['token_embedder']['embedding'].T,
  )
  jax.tree.map(np.testing.assert_array_equal, prepared, params)
  assert prepared_config.separate_head and not config.separate_head


@pytest.mark.parametrize(('platform', 'block'), [('cpu', 1), ('tpu', 4)])
def test_min_block_is_four_on_a_tpu(platform, block):
  prepared = t5_preparation.prepare_config(tiny.config(), platform)
  assert prepared.min_block == block


@pytest.mark.parametrize('overrides', [{}, T5_1_0])
def test_all_but_the_head_are_cast_to_the_networks_dtype(overrides):
  """T5X multiplies the head in float32, at the precision of the checkpoint."""
  config = tiny.config(dtype=jnp.bfloat16, **overrides)
  _, prepared = prepare_and_merge(config, tiny.params(config))
  head = prepared['decoder'].pop('logits_dense')['kernel']
  assert head.dtype == jnp.float32
  assert {x.dtype.name for x in jax.tree.leaves(prepared)} == {'bfloat16'}
