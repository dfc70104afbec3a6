# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the network computes what T5X does."""

import dataclasses
import functools
import json
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import t5
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import contracts
from tests import tiny
from tests.networks import dropout_masks

GOLDEN = pathlib.Path(__file__).parent / 'golden'


@pytest.fixture(scope='module')
def golden():
  """Return what T5X computes for the tiny network: see golden/README.md."""
  with np.load(GOLDEN / 't5x_tiny.npz') as arrays:
    return dict(arrays)


def encode(config, params, inputs):
  encode = functools.partial(tiny.encode, config)
  return jax.jit(encode)(params, inputs)[1]


class TestParameterTree:

  def variables(self):
    tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    config = tiny.config(num_encoder_layers=1, dtype=jnp.bfloat16)
    init = functools.partial(
        transformer.Transformer(config).init, enable_dropout=False
    )
    return jax.eval_shape(init, jax.random.key(0), tokens, tokens, tokens)

  def by_name(self, tree, is_leaf=None):
    flat, _ = jax.tree.flatten_with_path(tree, is_leaf=is_leaf)
    return {
        '/'.join(part.key for part in path if hasattr(part, 'key')): leaf
        for path, leaf in flat
    }

  def test_names_shapes_and_axes_are_those_of_t5x(self):
    variables = self.variables()
    shapes = self.by_name(variables['params'])
    axes = self.by_name(
        nn.partitioning.get_axis_names(variables['params_axes']),
        is_leaf=lambda x: isinstance(x, jax.sharding.PartitionSpec),
    )
    found = {
        name: {'shape': list(shapes[name].shape), 'axes': list(axes[name])}
        for name in shapes
    }
    assert found == json.loads((GOLDEN / 'parameter_tree.json').read_text())
    assert set(variables) == {'params', 'params_axes'}
    assert {leaf.dtype.name for leaf in shapes.values()} == {'float32'}

  @pytest.mark.parametrize('dtype', ['float16', 'float23', jnp.float64])
  def test_unsupported_dtype(self, dtype):
    with pytest.raises(ValueError, match='must be float32 or bfloat16, got'):
      tiny.config(dtype=dtype)


class TestInitialParameters:
  """Standard deviations and distributions are T5X's."""

  # The query kernel includes the factor 1/sqrt(head_dim).
  KERNELS = {
      'token_embedder/embedding': (1.0, 'normal'),
      'query/kernel': ((64 * 16) ** -0.5, 'normal'),
      'key/kernel': (64**-0.5, 'normal'),
      'value/kernel': (64**-0.5, 'normal'),
      'out/kernel': (48**-0.5, 'normal'),
      'wi_0/kernel': (64**-0.5, 'truncated'),
      'wi_1/kernel': (64**-0.5, 'truncated'),
      'wo/kernel': (96**-0.5, 'truncated'),
      'logits_dense/kernel': (64**-0.5, 'truncated'),
      'rel_embedding': (((3 + 32) / 2) ** -0.5, 'uniform'),
  }
  # The largest number drawn, in standard deviations.
  FARTHEST = {
      'normal': (2.8, 6.0),
      'truncated': (2.1, 2.28),
      'uniform': (1.5, 1.74),
  }

  def test_every_kind_of_parameter(self):
    config = t5.T5Config(
        vocab_size=200, emb_dim=64, num_heads=3, head_dim=16, mlp_dim=96,
        num_encoder_layers=1, num_decoder_layers=1,
    )  # fmt: skip
    tokens = jnp.ones((1, 1), jnp.int32)
    init = functools.partial(
        transformer.Transformer(config).init, enable_dropout=False
    )
    params = jax.jit(init)(jax.random.key(0), tokens, tokens, tokens)['params']
    seen = set()
    for path, leaf in jax.tree.flatten_with_path(params)[0]:
      name = '/'.join(part.key for part in path)
      if name.endswith('scale'):
        np.testing.assert_array_equal(leaf, 1)
        continue
      (kind,) = [x for x in self.KERNELS if name.endswith(x)]
      seen.add(kind)
      std, form = self.KERNELS[kind]
      assert np.std(leaf) == pytest.approx(std, rel=0.15), name
      low, high = self.FARTHEST[form]
      assert low < np.abs(leaf).max() / std < high, name
    assert seen == set(self.KERNELS)


def test_dropout_masks():
  """All positions share a mask, except for the encoder's output."""
  expected = {
      'encoder': [
          (2, 1, 32),
          (2, 2, 1, 5), (2, 1, 32), (2, 1, 48), (2, 1, 32),
          (2, 5, 32),
      ],
      'decoder': [
          (2, 1, 32),
          (2, 2, 1, 4), (2, 1, 32), (2, 2, 1, 5), (2, 1, 32),
          (2, 1, 48), (2, 1, 32),
          (2, 1, 32),
      ],
  }  # fmt: skip
  found = dropout_masks.of(transformer.Transformer(dropout_masks.CONFIG))
  assert found == [
      (0.75, shape) for shapes in expected.values() for shape in shapes
  ]


def test_a_table_per_layer():
  """With equal tables it is a T5; otherwise each layer has its own."""
  shared = tiny.config()
  config = dataclasses.replace(shared, bias_per_layer=True)
  params = tiny.params(shared)
  inputs, outputs = tiny.t5x_tokens(2, 6), 2 + tiny.t5x_tokens(2, 6) % 50
  own = dict(params)
  for stack in ('encoder', 'decoder'):
    own[stack] = dict(params[stack])
    table = own[stack].pop('relpos_bias')
    for name in ('layers_0', 'layers_1'):
      own[stack][name] = {**params[stack][name], 'relpos_bias': table}
  logits = tiny.teacher_forced(config, own, inputs, outputs)
  expected = tiny.teacher_forced(shared, params, inputs, outputs)
  np.testing.assert_array_equal(logits, expected)
  for stack in ('encoder', 'decoder'):
    for layer in (own[stack][f'layers_{i}'] for i in range(2)):
      table = layer['relpos_bias']['rel_embedding']
      layer['relpos_bias'] = {'rel_embedding': table[::-1]}
      changed = tiny.teacher_forced(config, own, inputs, outputs)
      layer['relpos_bias'] = {'rel_embedding': table}
      assert np.abs(changed - logits).max() > 0.01


@pytest.mark.parametrize('is_tied', [True, False])
def test_only_a_tied_head_is_scaled(is_tied):
  config = tiny.config(logits_via_embedding=is_tied)
  params = tiny.params(config)
  x = np.float32(np.random.default_rng(0).normal(size=(3, 32)))
  head_of = lambda network, x: network.decoder.logits_of(x)[0]
  logits = transformer.Transformer(config).apply(
      {'params': params}, x, method=head_of
  )
  if is_tied:
    head = params['token_embedder']['embedding'].T / 32**0.5
  else:
    head = params['decoder']['logits_dense']['kernel']
  np.testing.assert_allclose(logits, x @ np.asarray(head), atol=1e-5)


class TestGolden:
  """Comparisons with what T5X computed for the same weights."""

  def teacher_forced(self, config, golden):
    inputs = golden['encoder_input_tokens'][:3]
    targets = golden['decoder_target_tokens']
    return tiny.teacher_forced(config, tiny.params(config), inputs, targets)

  def test_teacher_forced_logits(self, golden):
    logits = self.teacher_forced(tiny.config(), golden)
    is_target = golden['decoder_target_tokens'] > 0
    np.testing.assert_allclose(
        np.asarray(logits)[is_target], golden['logits'][is_target], atol=1e-4
    )

  def test_bfloat16(self, golden):
    """T5X's own bfloat16 logits are within 0.1 of its float32 logits."""
    logits = self.teacher_forced(tiny.config(dtype=jnp.bfloat16), golden)
    assert logits.dtype == jnp.float32
    is_target = golden['decoder_target_tokens'] > 0
    error = np.abs(np.asarray(logits) - golden['logits'])[is_target]
    assert 1e-3 < error.max() < 0.2  # rounding, and no other difference

  @pytest.mark.parametrize('way', ['alone', 'tokens'])
  def test_greedy_decoding(self, golden, way):
    decoder = tiny.decoder(
        tiny.config(), gamma=3, length=16, noise=0.02, rescale_log_probs=False
    )
    request = tiny.batch(golden['encoder_input_tokens'], 16)
    decoded = tiny.decoded(getattr(decoder, way), request)
    np.testing.assert_array_equal(decoded.sequences, golden['greedy_tokens'])
    np.testing.assert_allclose(
        decoded.log_probs, golden['greedy_log_probs'], atol=1e-3
    )
    assert int(decoded.num_tokens[3]) == 7
    num_calls, num_tokens = decoded.num_calls.sum(), decoded.num_tokens.sum()
    assert (num_calls < num_tokens) == (way == 'tokens')


@pytest.mark.parametrize('length', [6, 40])  # of one width, and of several
def test_id_0_in_an_input_is_a_token(length):
  """As another id with the same embedding."""
  config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
  params = tiny.params(config)
  inputs = jnp.full((2, length), contracts.NO_TOKEN).at[:, :5].set(
      jnp.array([[7, 4, 7, 7, 1], [5, 7, 6, 1, contracts.NO_TOKEN]])
  )
  zeros = jnp.where(inputs == 7, 0, inputs)
  table = params['token_embedder']['embedding']
  params['token_embedder']['embedding'] = table.at[0].set(table[7])
  start = jax.jit(config.start, static_argnums=(2, 3))
  expected, found = (start(params, x, 2, 4) for x in (inputs, zeros))
  shared = start(params, zeros, 2, 4, expected.features)
  for each in (found, shared):
    jax.tree.map(
        np.testing.assert_array_equal,
        (each.memory, each.features),
        (expected.memory, expected.features),
    )
