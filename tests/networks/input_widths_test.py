# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the width of the encoder changes its time and nothing else."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import t5_modules
from tests import tiny

LENGTH = 40  # compiled at 20 and 40
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
  """Returns inputs whose longest has `num_real` tokens, padding amid them."""
  tokens = np.array(tiny.encoder_tokens(ROWS, LENGTH))
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
    network = t5_modules.Transformer(model.config)
    variables = {'params': params}
    output = network.apply(variables, tokens, False, method='encode')
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
