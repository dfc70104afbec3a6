# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the network against T5X's, and of T5X's own sampler."""

import functools

from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research import t5x_sampler
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.t5x_guest import public_checkpoints
from tests import tiny
from tests.networks import dropout_masks
from tests.t5x_guest import tiny_decoder_pair
from tests.t5x_guest import tiny_pair

# `settings_test` compares the sizes of these with T5X's own files.
NAMES = [
    't5_1_1_small', 't5_1_1_base', 't5_1_1_large', 't5_1_1_xl', 't5_1_1_xxl',
    't5_small', 't5_base', 't5_large', 't5_3B', 't5_11B',
]  # fmt: skip


def variables(network):
  tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
  init = functools.partial(network.init, enable_dropout=False)
  return jax.eval_shape(init, jax.random.key(0), tokens, tokens, tokens)


def _is_spec(x) -> bool:
  return isinstance(x, jax.sharding.PartitionSpec)


def described(tree):
  """Return shapes, dtypes and logical axes by name, without allocation."""
  axes = partitioning.get_axis_names(tree['params_axes'])
  return {
      'params': jax.tree.map(lambda x: (x.shape, x.dtype.name), tree['params']),
      'axes': jax.tree.map(tuple, axes, is_leaf=_is_spec),
  }


@pytest.mark.parametrize('name', NAMES)
def test_parameters_are_t5xs_at_every_size(name):
  config = public_checkpoints._config(name)
  found = described(variables(tiny.Transformer(config)))
  expected = described(variables(tiny_pair.transformer(config)))
  assert found == expected
  kernel = found['params']['encoder']['layers_0']['attention']['out']['kernel']
  assert kernel[0] == (config.num_heads * config.head_dim, config.emb_dim)


def test_initial_parameters_are_t5xs():
  """All numbers are drawn from one key."""
  config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
  tokens = jnp.ones((1, 1), jnp.int32)
  drawn = [
      network.init(
          jax.random.PRNGKey(3), tokens, tokens, tokens, enable_dropout=False
      )['params']
      for network in (
          tiny.Transformer(config),
          tiny_pair.transformer(config),
      )
  ]
  jax.tree.map(np.testing.assert_array_equal, *drawn)


def test_dropout_is_where_t5x_has_it():
  config = dropout_masks.CONFIG
  masks = dropout_masks.of(tiny.Transformer(config))
  assert masks == dropout_masks.of(tiny_pair.transformer(config))


@pytest.mark.parametrize(
    'overrides',
    [
        {},
        tiny_pair.T5_1_0,
        {'mlp_activations': ('silu', 'linear')},
    ],
    ids=['T5 1.1', 'T5 1.0', 'UL2'],
)
def test_logits_are_t5xs(overrides):
  """Of the tree as it is stored, and of the prepared tree in a block."""
  config = tiny.config(**overrides)
  params = tiny.params(config)
  inputs = tiny.encoder_tokens(2, 8)
  targets = 2 + tiny.t5x_tokens(2, 6) % 50  # no padding
  fed = jnp.pad(targets[:, :-1], ((0, 0), (1, 0)))
  expected, found = (
      network.apply(
          {'params': params}, inputs, fed, targets, enable_dropout=False
      )
      for network in (
          tiny_pair.transformer(config), tiny.Transformer(config)
      )
  )  # fmt: skip
  np.testing.assert_allclose(found, expected, atol=5e-5)
  in_block = in_a_block(config, params, inputs, fed)
  np.testing.assert_allclose(in_block, expected, atol=5e-5)


@pytest.mark.parametrize('overrides', [{}, tiny_pair.T5_1_0])
@pytest.mark.parametrize('stored', [jnp.float32, jnp.bfloat16])
def test_logits_in_bfloat16_are_t5xs(stored, overrides):
  """T5X multiplies the head as it was restored."""
  config = tiny.config(dtype=jnp.bfloat16, **overrides)
  params = jax.tree.map(lambda x: x.astype(stored), tiny.params(config))
  inputs, fed = tiny.encoder_tokens(3, 9), jnp.zeros((3, 1), jnp.int32)
  expected = tiny_pair.transformer(config).apply(
      {'params': params}, inputs, fed, fed + 5, enable_dropout=False
  )
  logits = in_a_block(config, params, inputs, fed)
  # A head rounded to bfloat16 would differ by several times that.
  np.testing.assert_allclose(logits, expected, atol=2e-3)


def in_a_block(config, params, inputs, fed):
  """Return logits of tokens fed in one block, with the prepared tree."""
  rows, length = fed.shape
  config, params = t5_preparation.prepare(config, params)
  model = network_lib.NetworkModel(config, t5.SPECIAL_IDS)
  started = model.start(params, inputs, rows, length + 2)
  return model.decode(
      params, started.memory, started.cache, fed, started.offsets, None
  )[0]


_LENGTH = 10


def _requests(**options):
  rows = np.asarray(tiny.encoder_tokens(3, 9))
  return list(tiny.batches(rows, batch_size=2, length=_LENGTH, **options))


@pytest.mark.parametrize('overrides', [{}, tiny_pair.T5_1_0])
def test_greedy_outputs_are_those_of_plain_decoding(overrides):
  """Of merged kernels and a tied head, with a row that fills the batch."""
  decoder = tiny.decoder(tiny.config(**overrides), length=_LENGTH, gamma=2)
  assert decoder.target.config.merge_projections
  way = t5x_sampler.reference(decoder).way(sampling_lib.GREEDY)
  for request in _requests(sampling=sampling_lib.GREEDY):
    found = jax.device_get(way(request))
    plain = tiny.decoded(decoder.alone, request)
    np.testing.assert_array_equal(found.sequences, plain.sequences)
    for name in ('num_tokens', 'num_calls'):
      np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    jax.tree.map(np.testing.assert_array_equal, found.work, plain.work)


@pytest.fixture(scope='module')
def decoder():
  return tiny.decoder(tiny.config(), length=_LENGTH, gamma=2)


def test_a_decoder_alone_is_t5xs():
  """Names, shapes and logical axes, and logits past all exact buckets.

  Prompts attend to themselves or not.
  """
  config = tiny_decoder_pair.CAUSAL
  theirs = tiny_decoder_pair.module(config)
  tokens = np.random.default_rng(0).integers(1, 96, (2, 150), np.int32)
  made = jax.eval_shape(
      functools.partial(theirs.init, enable_dropout=False),
      jax.random.key(0), tokens, tokens,
  )  # fmt: skip
  ours = jax.eval_shape(config.init, jax.random.key(0))
  assert jax.tree.map(lambda x: (x.shape, x.dtype), ours) == jax.tree.map(
      lambda x: (x.shape, x.dtype), made['params']
  )
  axes = partitioning.get_axis_names(made['params_axes'])
  assert jax.tree.map(tuple, config.axes(), is_leaf=_is_spec) == jax.tree.map(
      tuple, axes, is_leaf=_is_spec
  )
  size = 40  # of the prompts
  fed = np.pad(tokens[:, :-1], ((0, 0), (1, 0)))
  is_prompt = np.broadcast_to(np.arange(150) <= size, tokens.shape)
  for each, mask in (config, None), (tiny_decoder_pair.PREFIX, is_prompt * 1):
    with jax.default_matmul_precision('highest'):
      expected = theirs.apply(
          {'params': tiny_decoder_pair.PARAMS},
          fed,
          tokens,
          decoder_causal_attention=mask,
          enable_dropout=False,
      )
      found = jax.jit(each.score)(
          tiny_decoder_pair.PARAMS, tokens[:, :size], tokens[:, size:]
      )
    np.testing.assert_allclose(found, expected[:, size:], atol=1e-4)
