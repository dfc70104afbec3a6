# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the network computes what T5X does."""

import functools
import json
import pathlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import tiny
from tests.networks import dropout_masks

GOLDEN = pathlib.Path(__file__).parent / 'golden'


@pytest.fixture(scope='module')
def golden():
  """Return what T5X computes for the tiny network: see golden/README.md."""
  with np.load(GOLDEN / 't5x_tiny.npz') as arrays:
    return dict(arrays)


class TestParameterTree:

  def variables(self):
    tokens = jax.ShapeDtypeStruct((1, 1), jnp.int32)
    config = tiny.config(num_encoder_layers=1, dtype=jnp.bfloat16)
    init = functools.partial(
        tiny.Transformer(config).init, enable_dropout=False
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
  found = dropout_masks.of(tiny.Transformer(dropout_masks.CONFIG))
  assert found == [
      (0.75, shape) for shapes in expected.values() for shape in shapes
  ]


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
