# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the cache: which slots are written, and which are read."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.speculation import state as state_lib
from tests import tiny

HEADS, HEAD_DIM, SLOTS = 2, 3, 7


def numbers(*shape, start=0):
  values = np.arange(start, start + np.prod(shape), dtype=np.float32)
  return jnp.asarray(np.sin(values**2).reshape(shape))


def keys_values(*shape, start=0):
  return kv_cache.KeysValues(
      numbers(*shape, start=start), numbers(*shape, start=start + 1000)
  )


def assert_bit_equal(a, b):
  """Checks bits: 0.0 differs from -0.0, and NaN equals NaN."""
  as_bits = lambda x: np.asarray(x, np.float32).view(np.int32)
  jax.tree.map(
      lambda x, y: np.testing.assert_array_equal(as_bits(x), as_bits(y)), a, b
  )


class TestWriteBlock:

  @pytest.mark.parametrize('position', [0, 2, SLOTS - 3])
  def test_one_row(self, position):
    """The block is written at its place, and all other slots are unchanged."""
    cache = keys_values(HEADS, HEAD_DIM, SLOTS)
    block = keys_values(HEADS, HEAD_DIM, 3, start=5000)
    new = kv_cache.write_block(cache, block, jnp.int32(position))
    for before, written, after in zip(cache, block, new, strict=True):
      expected = np.array(before)
      expected[..., position : position + 3] = written
      assert_bit_equal(after, expected)

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
  @pytest.mark.parametrize('length', [1, 2, SLOTS])
  def test_both_forms_write_the_same(self, dtype, length):
    """A TPU selects where other devices update."""
    cast = lambda tree: jax.tree.map(lambda x: x.astype(dtype), tree)
    cache = cast(keys_values(3, HEADS, HEAD_DIM, SLOTS))
    cache = jax.tree.map(lambda x: x.at[0, 0, 0].set(jnp.nan), cache)
    block = cast(keys_values(3, HEADS, HEAD_DIM, length, start=5000))
    last = SLOTS - length
    positions = jnp.asarray([0, last, last // 2], jnp.int32)
    assert_bit_equal(
        kv_cache.select_rows(cache, block, positions),
        kv_cache.update_rows(cache, block, positions),
    )

  def test_selection_rounds_nothing(self):
    """A TPU multiplies float32 in bfloat16 by default."""
    cache = keys_values(2, HEADS, HEAD_DIM, SLOTS)
    block = keys_values(2, HEADS, HEAD_DIM, 2)
    program = jax.make_jaxpr(kv_cache.select_rows)(
        cache, block, jnp.zeros((2,), jnp.int32)
    )
    products = [e for e in program.eqns if e.primitive.name == 'dot_general']
    highest = jax.lax.Precision.HIGHEST
    assert len(products) == 2
    for product in products:
      assert set(product.params['precision']) == {highest}


class TestRead:

  def test_unwritten_values_are_zero_and_the_rest_as_written(self):
    cache = keys_values(2, HEADS, HEAD_DIM, SLOTS)
    read = kv_cache.read(cache, jnp.asarray([3, SLOTS], jnp.int32))
    expected = np.array(cache.values)
    expected[0, ..., 3:] = 0
    assert_bit_equal(read.values, expected)
    assert_bit_equal(read.keys, cache.keys)


class TestPoison:
  """Values in unwritten slots do not affect the logits."""

  @pytest.mark.parametrize('rows', [1, 3])
  def test_unwritten_slots(self, rows):
    """The cache is full of bad values, and 6 tokens are fed in blocks of 2."""
    decode, empty = tiny_decoder(rows, 12)
    tokens = tiny.encoder_tokens(rows, 6)
    for bad in (jnp.nan, jnp.inf, -jnp.inf, 3e38):
      clean = empty
      poisoned = jax.tree.map(lambda x, bad=bad: jnp.full_like(x, bad), empty)
      for start in (0, 2, 4):
        block, positions = tokens[:, start : start + 2], [start] * rows
        logits, clean = decode(clean, block, positions)
        other_logits, poisoned = decode(poisoned, block, positions)
        assert np.isfinite(logits).all()
        assert_bit_equal(logits, other_logits)

  def test_rejected_draft_tokens(self):
    """After a rewind, the rest of a longer block has no effect."""
    decode, cache = tiny_decoder(2, 12)
    tokens = tiny.encoder_tokens(2, 8)
    _, cache = decode(cache, tokens[:, :6], [0, 0])
    stale = jax.tree.map(lambda x: x.at[0, ..., 2:].set(jnp.nan), cache)
    rows = jnp.stack([tokens[0, 2:4], tokens[1, 5:7]])
    logits, _ = decode(cache, rows, [2, 5])
    other_logits, _ = decode(stale, rows, [2, 5])
    assert np.isfinite(other_logits).all()
    assert_bit_equal(logits, other_logits)


def test_slots_suffice_for_every_write():
  """The last write of an ended row is not clamped: slots >= length + block.

  A cache of one slot fewer than a block needs would move the block down over
  valid keys.
  """
  for length, gamma in itertools.product((1, 6), (0, 1, 4)):
    assert state_lib.cache_slots(length, gamma) >= length + gamma + 1


def test_leaves_of_an_empty_cache_are_separate_buffers():
  """The loop would copy a shared buffer."""
  cache = t5_modules.init_cache(tiny.config(dtype=jnp.bfloat16), (2,), 9)
  leaves = jax.tree.leaves(cache)
  assert len({x.unsafe_buffer_pointer() for x in leaves}) == len(leaves) == 4
  for leaf in leaves:
    assert (leaf.shape, leaf.dtype) == ((2, 2, 16, 9), jnp.bfloat16)


def encode(model, tokens):
  encode = functools.partial(tiny.encode, model.config)
  return jax.jit(encode)(model.params, tokens)[1]


def tiny_decoder(rows: int, slots: int):
  """Returns a function that decodes a block, and its empty initial cache."""
  model = tiny.model(tiny.config(num_encoder_layers=1))
  tokens = tiny.encoder_tokens(rows, 7)
  context = encode(model, tokens)
  decoder = network_lib.NetworkModel(model.config, t5.SPECIAL_IDS)

  @jax.jit
  def decode(cache, tokens, positions):
    return decoder.decode(model.params, context, cache, tokens, positions, None)

  return (
      lambda cache, tokens, positions: decode(
          cache, tokens, jnp.asarray(positions, jnp.int32)
      ),
      decoder.network.init_cache(rows, slots),
  )
