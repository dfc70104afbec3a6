# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a decoder reads: slots of the cache, and widths of inputs."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import transformer
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
  """Check bits: 0.0 differs from -0.0, and NaN equals NaN."""
  as_bits = lambda x: np.asarray(x, np.float32).view(np.int32)
  jax.tree.map(
      lambda x, y: np.testing.assert_array_equal(as_bits(x), as_bits(y)), a, b
  )


class TestWriteBlock:

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

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
  def test_both_forms_take_the_same_nodes(self, dtype):
    block = keys_values(2, HEADS, HEAD_DIM, 5)
    block = jax.tree.map(lambda x: x.astype(dtype), block)
    paths = jnp.int32([[[4, 0], [1, 1], [0, 3]], [[2, 4], [3, 1], [4, 4]]])
    taken = kv_cache.take_paths(block, paths)
    assert_bit_equal(kv_cache.select_paths(block, paths), taken)
    assert_bit_equal(taken.keys[1 * 3 + 2, ..., 1], block.keys[1, ..., 4])
    assert_bit_equal(taken.values[1, ..., 0], block.values[0, ..., 1])

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


def test_slots_suffice_for_every_write():
  """The last write of an ended row is not clamped: slots >= length + block.

  A cache of one slot fewer than a block needs would move the block down over
  valid keys.
  """
  for length, gamma in itertools.product((1, 6), (0, 1, 4)):
    assert state_lib.cache_slots(length, gamma) >= length + gamma + 1


def test_leaves_of_an_empty_cache_are_separate_buffers():
  """The loop would copy a shared buffer."""
  config = tiny.config(dtype=jnp.bfloat16)
  cache = transformer.init_cache(config.decoder, (2,), 9)
  leaves = jax.tree.leaves(cache)
  assert len({x.unsafe_buffer_pointer() for x in leaves}) == len(leaves) == 4
  for leaf in leaves:
    assert (leaf.shape, leaf.dtype) == ((2, 2, 16, 9), jnp.bfloat16)


INPUTS_LENGTH = 40  # compiled at 20 and 40
ROWS = 3


@pytest.mark.parametrize('axis', [0, -1])
def test_the_smallest_width_is_run_that_holds_every_input(axis):
  """For every place of the last token, in each row."""
  run = lambda width: jnp.full((width, 2) if axis == 0 else (2, width), width)
  at_smallest = jax.jit(
      lambda is_input: input_widths.at_smallest(is_input, axis, run)
  )
  for row in range(ROWS):
    for last in range(64):
      is_input = np.zeros((ROWS, 64), bool)
      is_input[:, 0] = True
      is_input[row, last] = True  # padding may be before it
      found = np.asarray(at_smallest(is_input))
      width = 16 if last < 16 else 32 if last < 32 else 64
      expected = np.where(np.arange(64) < width, width, 0)
      expected = np.broadcast_to(expected, (2, 64))
      np.testing.assert_array_equal(found if axis else found.T, expected)


@pytest.mark.parametrize('num_empty', [1, 3])
def test_a_row_without_a_token_is_read_as_a_whole(num_empty):
  """Or its output would depend on how long the other inputs are."""
  is_input = np.zeros((ROWS, 64), bool)
  is_input[num_empty:, :5] = True
  run = lambda width: jnp.ones((1, width))
  assert input_widths.at_smallest(jnp.asarray(is_input), -1, run).sum() == 64


def _tokens(num_real: int) -> np.ndarray:
  """Return inputs whose longest has `num_real` tokens, padding amid them."""
  tokens = np.array(tiny.encoder_tokens(ROWS, INPUTS_LENGTH))
  tokens[tokens < 0] = 5
  tokens[0, num_real:] = -1
  tokens[1:, max(num_real - 7, 1) :] = -1
  tokens[0, 3 : num_real - 1 : 6] = -1
  return tokens


@functools.cache
def _model():
  return tiny.model(tiny.config())


@functools.cache
def _programs():
  model = _model()

  def whole(params, tokens):
    network = transformer.Transformer(model.config)
    variables = {'params': params}
    output = network.apply(variables, tokens, tokens > 0, method='encode')
    return output, network.apply(variables, output, method='cross_keys_values')

  trimmed = functools.partial(tiny.encode, model.config)
  return jax.jit(whole), jax.jit(trimmed)


@pytest.mark.parametrize('num_real', [1, 2, 19, 20, 21, 39, 40])
def test_what_a_decoder_reads_is_that_of_the_whole_inputs(num_real):
  model, tokens = _model(), _tokens(num_real)
  (output, cross), (found, memory) = (
      program(model.params, tokens) for program in _programs()
  )
  is_input = tokens >= 0
  np.testing.assert_array_equal(memory.is_input, is_input)
  np.testing.assert_allclose(found[is_input], output[is_input], atol=1e-5)
  width = 20 if num_real <= 20 else 40
  assert not np.any(found[:, width:])
  for one, other in zip(
      jax.tree.leaves(memory.cross), jax.tree.leaves(cross), strict=True
  ):
    one, other = (np.moveaxis(x, -1, 1)[is_input] for x in (one, other))
    np.testing.assert_allclose(one, other, atol=1e-5)
