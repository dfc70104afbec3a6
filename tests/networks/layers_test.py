# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of layers, each against its formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import attention
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import layers
from speculative_t5x.networks import norms

# The distances at which T5's buckets begin, 32 one way and 16 each way.
ONE_WAY_STARTS = [
    *range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113
]  # fmt: skip
EACH_WAY_STARTS = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]


def numbers(*shape, start=0, scale=1.0):
  values = np.arange(start, start + np.prod(shape), dtype=np.float64)
  values = np.sin(values**2) * scale
  return jnp.asarray(values.reshape(shape), jnp.float32)


class TestRelativePositions:

  @pytest.mark.parametrize(
      ('starts', 'bidirectional'),
      [(ONE_WAY_STARTS, False), (EACH_WAY_STARTS, True)],
  )
  def test_buckets(self, starts, bidirectional):
    """Keys after the query have the second half of the buckets, or bucket 0."""
    distances = np.array([*range(1, 140), 1000])
    expected = np.searchsorted(starts, distances, side='right') - 1
    buckets = layers.relative_position_buckets
    np.testing.assert_array_equal(buckets(-distances, bidirectional), expected)
    np.testing.assert_array_equal(
        buckets(distances, bidirectional), bidirectional * (expected + 16)
    )
    assert buckets(np.array(0), bidirectional) == 0


@pytest.mark.parametrize('shape', [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
def test_gradients_of_a_projection(shape, dtype):
  """They are those of JAX's own product, in the dtypes of its operands."""
  module = layers.Projection(4, ('embed', 'mlp'), dtype)
  x, kernel = numbers(*shape), numbers(5, 4, start=7)
  weights = numbers(*shape[:-1], 4, start=9)
  of = lambda product: jax.grad(
      lambda x, kernel: (product(x, kernel) * weights).sum(), argnums=(0, 1)
  )(x, kernel)
  params = lambda kernel: {'params': {'kernel': kernel}}
  found = of(lambda x, kernel: module.apply(params(kernel), x))
  expected = of(
      lambda x, kernel: jnp.dot(x.astype(dtype), kernel.astype(dtype))
  )
  rounding = 1e-6 if dtype == jnp.float32 else 2e-2
  for one, other in zip(found, expected, strict=True):
    assert one.dtype == other.dtype
    np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding)


@pytest.mark.parametrize('shape', [(), (1,), (1, 1), (2,)])
@pytest.mark.parametrize('inputs', [768, 1024, 1000])
@pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
def test_product_with_a_tall_kernel(shape, inputs, dtype):
  """One vector is multiplied in parts on a CPU."""
  x, kernel = numbers(*shape, inputs), numbers(inputs, 3, start=7)
  given = [np.asarray(each.astype(dtype), np.float64) for each in (x, kernel)]
  found = layers.Projection(3, ('mlp', 'embed'), dtype).apply(
      {'params': {'kernel': kernel}}, x
  )
  assert found.dtype == dtype
  rounding = 1e-5 if dtype == jnp.float32 else 2e-2
  np.testing.assert_allclose(
      np.asarray(found, np.float64), np.dot(*given), rtol=rounding, atol=1e-3
  )


def test_recurrence_over_draft_tokens():
  """s = silu(E[token] + V x + A s), and W s is added to the logits."""
  recurrence = layers.DraftRecurrence(vocab_size=5, dim=3, dtype=jnp.float32)
  state, read, tokens = numbers(2, 3), numbers(2, 3, start=6), np.array([4, 1])
  params = {
      'token': {'embedding': numbers(5, 3, start=20)},
      'state': {'kernel': numbers(3, 3, start=40)},
      'logits_dense': {'kernel': numbers(3, 5, start=50)},
  }
  found = recurrence.apply({'params': params}, state, tokens, read)
  embedding, a, w = (np.asarray(*each.values()) for each in params.values())
  x = embedding[tokens] + read + state @ a
  expected = x / (1 + np.exp(-x))
  for one, other in zip(found, (expected @ w, expected), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_embedding_is_a_gather_and_not_a_product():
  program = str(
      jax.make_jaxpr(layers.Embedding(11, 4, jnp.float32).apply)(
          {'params': {'embedding': numbers(11, 4)}}, jnp.array([[3, 0, 10]])
      )
  )
  assert 'gather' in program
  assert 'dot_general' not in program


def test_norm_in_bfloat16_is_rounded_before_it_is_scaled():
  """In T5X, the scale has that dtype too."""
  x, scale = numbers(64), numbers(64, start=50) + 2
  normalized = norms.Norm('rms', jnp.float32).apply(
      {'params': {'scale': jnp.ones(64)}}, x
  )
  y = norms.Norm('rms', jnp.bfloat16).apply({'params': {'scale': scale}}, x)
  rounded = normalized.astype(jnp.bfloat16) * scale.astype(jnp.bfloat16)
  np.testing.assert_array_equal(y, rounded)


@pytest.mark.parametrize('kernel_dtype', [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
def test_product_of_logits_is_in_float32(dtype, kernel_dtype):
  """Logits are the float32 product of the rounded numbers."""
  x = numbers(3, 64).astype(dtype)
  kernel = numbers(64, 40, start=999).astype(kernel_dtype)
  logits = layers.LogitsProjection(40).apply({'params': {'kernel': kernel}}, x)
  assert logits.dtype == jnp.float32
  expected = np.asarray(x, np.float64) @ np.asarray(kernel, np.float64)
  np.testing.assert_allclose(logits, expected, atol=2e-5)


def test_attention_dropout_is_shared_by_queries():
  """Equal queries stay equal, because a key is dropped for all of them."""
  heads, head_dim, embed, slots = 2, 8, 12, 5
  config = config_lib.Stack(
      0, embed, num_heads=heads, head_dim=head_dim, dropout_rate=0.5
  )
  module = attention.Attention(config)
  variables = {
      'params': {'out': {'kernel': numbers(heads * head_dim, embed, start=77)}}
  }
  keys_values = kv_cache.KeysValues(
      numbers(heads, head_dim, slots, start=200),
      numbers(heads, head_dim, slots, start=400),
  )
  attend = lambda seed: module.apply(
      variables,
      jnp.repeat(numbers(1, heads, head_dim), 4, axis=0),
      attention.Keys(keys_values, np.ones((1, slots), bool)),
      drop=True,
      rngs={'dropout': jax.random.key(seed)},
      method='attend',
  )
  for seed in range(3):
    y = attend(seed)
    np.testing.assert_array_equal(y, np.broadcast_to(y[0], y.shape))
  assert not np.array_equal(attend(0), attend(1))
