# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""How exact draws and coins are, over all 2^64 values of a uniform.

A draw is monotone in each of its words, and a coin in both. Bisection therefore
finds how many values give each outcome, by the production code alone.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import verification

NUM_WORDS = 2**32
_draw = jax.jit(jax.vmap(sampling.draw, (None, 0)))  # one row of weights


def count_words(is_below, count: int) -> np.ndarray:
  """Return how many words satisfy each of some monotone conditions.

  They take a word per condition, [count] uint32, and are true up to some word.
  """
  low, high = np.zeros(count, np.int64), np.full(count, NUM_WORDS, np.int64)
  while np.any(low < high):
    middle = (low + high) // 2
    word = np.minimum(middle, NUM_WORDS - 1).astype(np.uint32)
    is_open = low < high
    below = np.asarray(is_below(word))
    low = np.where(is_open & below, middle + 1, low)
    high = np.where(is_open & ~below, middle, high)
  return low


def drawn_distribution(weights: np.ndarray) -> np.ndarray:
  """Return the exact distribution of `sampling.draw`, [vocab] float64."""
  size, array = sampling.BLOCK, jnp.asarray(weights)
  num_blocks = -(-weights.size // size)
  tokens = lambda *words: np.asarray(
      _draw(array, jnp.stack(jnp.broadcast_arrays(*words), axis=-1))
  )
  blocks = np.arange(num_blocks)
  any_word = jnp.uint32(2**31)
  ends = count_words(
      lambda word: tokens(word, any_word) // size <= blocks, num_blocks
  )
  begins = np.concatenate([[0], ends[:-1]])
  drawn = blocks[ends > begins]
  in_block = np.repeat(begins[drawn].astype(np.uint32), size)
  candidates = (drawn[:, None] * size + np.arange(size)).reshape(-1)
  within = count_words(
      lambda word: tokens(in_block, word) <= candidates, candidates.size
  ).reshape(-1, size)
  found = np.zeros((num_blocks, size))
  shares = np.diff(within, prepend=0, axis=1) / NUM_WORDS
  found[drawn] = (ends - begins)[drawn, None] / NUM_WORDS * shares
  return found.reshape(-1)[: weights.size]


def weights_of(shape: str, vocab: int) -> np.ndarray:
  rng = np.random.default_rng(vocab)
  zipf = 1 / np.arange(1, vocab + 1)
  peaked = np.full(vocab, 1e-7 / vocab)
  peaked[vocab // 3] = 1
  return {
      'flat': np.ones(vocab),
      'Zipf': zipf,
      'Zipf in any order': rng.permutation(zipf),
      'model-like': np.exp(5 * rng.normal(size=vocab)),
      'peaked': peaked,
  }[shape].astype(np.float32)


SHAPES = 'flat', 'Zipf', 'Zipf in any order', 'model-like', 'peaked'


@pytest.mark.parametrize(
    ('vocab', 'shape'),
    [
        *itertools.product((9, 130, 1000), SHAPES),
        *(
            pytest.param(32128, shape, marks=pytest.mark.exhaustive)
            for shape in ('model-like', 'flat', 'Zipf')
        ),
    ],
)
def test_draws(vocab, shape):
  weights = weights_of(shape, vocab)
  expected = weights.astype(np.float64) / weights.sum(dtype=np.float64)
  found = drawn_distribution(weights)
  distance = np.abs(found - expected).sum() / 2
  never = (found == 0) & (expected > 0)
  print(
      f'{vocab} {shape}: total variation {distance:.1e}; never drawn'
      f' {never.sum()} tokens of together {expected[never].sum():.1e}'
  )
  assert distance < 2e-7
  assert found.sum() == pytest.approx(1, abs=1e-12)
  # What is never drawn is rare: in a block, or with its whole block.
  assert np.all(expected[never] < 2.0**-30)


@pytest.mark.parametrize('q', [1.0, 0.3, 1e-6])
def test_coins(q):
  """The probability of acceptance is min(1, p / q), however small."""
  ratios = np.array([1e-15, 1e-12, 1e-9, 1e-7, 1e-3, 0.3, 0.5, 1 - 1e-6, 1, 3])
  p = (ratios * q).astype(np.float32)
  q = np.full_like(p, q)

  @jax.jit
  def accept(*words):
    coins = uniforms_lib.coins(jnp.stack(words, axis=-1), jnp.float32)
    return verification.acceptance(jnp.asarray(p), jnp.asarray(q), coins)

  last = np.full(p.shape, NUM_WORDS - 1, np.uint32)
  whole = count_words(lambda word: accept(word, last), p.size)
  first = np.minimum(whole, NUM_WORDS - 1).astype(np.uint32)
  part = count_words(lambda word: accept(first, word), p.size)
  part = np.where(whole < NUM_WORDS, part, 0)
  found = (whole + part / NUM_WORDS) / NUM_WORDS
  expected = np.minimum(1, p.astype(np.float64) / q)
  print('relative errors', np.abs(found / expected - 1))
  np.testing.assert_allclose(found, expected, rtol=1.5e-7, atol=2.0**-64)


@pytest.mark.usefixtures('float64')
@pytest.mark.parametrize('dtype', [jnp.float32, jnp.float64])
def test_coins_are_below_one(dtype):
  words = jnp.array([[0, 0], [NUM_WORDS - 1, NUM_WORDS - 1]], jnp.uint32)
  coins = np.asarray(uniforms_lib.coins(words, dtype))
  assert coins.dtype == dtype
  assert coins.tolist() == [0, np.nextafter(coins.dtype.type(1), 0)]
