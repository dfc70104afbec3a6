# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tree that decodes has the checkpoint's values in another arrangement."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import loading
from speculative_t5x.networks import preparation
from speculative_t5x.networks import t5
from tests import tiny


def logits(config, params):
  tokens = tiny.encoder_tokens(2, 6)
  apply = functools.partial(
      t5.Transformer(config).apply, enable_dropout=False
  )
  return jax.jit(apply)({'params': params}, tokens, tokens, tokens)


@pytest.mark.parametrize(
    'overrides',
    [{}, {'mlp_activations': ('relu',)}, {'num_heads': 3, 'head_dim': 8}],
)
def test_logits_are_the_same(overrides):
  config = tiny.config(**overrides)
  params = tiny.params(config)
  prepared_config, prepared = preparation.prepare(config, params)
  np.testing.assert_allclose(
      logits(prepared_config, prepared), logits(config, params), atol=2e-5
  )


def test_every_value_is_kept():
  """As many numbers as before, and the same ones."""
  config = tiny.config()
  params = tiny.params(config)
  _, prepared = preparation.prepare(config, params)
  flat = lambda tree: np.sort(
      np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])
  )
  np.testing.assert_array_equal(flat(prepared), flat(params))


def test_the_tree_is_the_one_that_the_prepared_network_makes():
  config = tiny.config()
  prepared_config, prepared = preparation.prepare(config, tiny.params(config))
  shapes = lambda tree: jax.tree.map(lambda x: x.shape, tree)
  assert shapes(prepared) == shapes(loading.abstract_params(prepared_config))
  layer = prepared['decoder']['layers_0']
  assert set(layer['self_attention']) == {'query_key_value', 'out'}
  # Queries come from the decoder, keys and values from the encoder.
  assert set(layer['encoder_decoder_attention']) == {
      'query', 'key', 'value', 'out',
  }


def test_what_was_given_is_left_alone():
  config = tiny.config()
  params = tiny.params(config)
  structure = jax.tree.structure(params)
  prepared_config, _ = preparation.prepare(config, params)
  assert jax.tree.structure(params) == structure
  assert not config.merge_projections and prepared_config.merge_projections


def test_cast_to_the_dtype_of_the_network():
  config = tiny.config(dtype=jnp.bfloat16)
  _, prepared = preparation.prepare(config, tiny.params(config))
  assert {x.dtype.name for x in jax.tree.leaves(prepared)} == {'bfloat16'}
