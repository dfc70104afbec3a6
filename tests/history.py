# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A language model whose next token depends on every token before it.

A digest of all tokens fed so far chooses a row of a table, so that one stale,
missing or misplaced entry of the cache changes the distribution. A table of two
tokens back (`tests.tabular`) forgets an entry too soon to tell.
"""

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import seam
from tests import tabular

NUM_ROWS = 1021  # a prime
_MOST_SLOTS = 1024
# Odd, so that no two tokens at a position have the same product.
_FACTORS = (
    np.random.default_rng(0).integers(2**32, size=_MOST_SLOTS, dtype=np.uint32)
    | 1
)


def decoder(vocab_size: int) -> seam.BlockDecoder:
  """Tables [tables, NUM_ROWS, vocab] as parameters.

  The context is the table each row uses, [batch]. The cache is the tokens fed,
  [batch, slots].
  """
  two_back = tabular.decoder(vocab_size)  # for its cache

  def decode_block(params, context, cache, tokens, positions, logits_at):
    offsets = positions[:, None] + jnp.arange(tokens.shape[1], dtype=jnp.int32)
    write = jax.vmap(
        lambda row, new, at: jax.lax.dynamic_update_slice(row, new, (at,))
    )
    cache = write(cache, tokens, positions)
    at = jnp.take_along_axis(_digests(cache, jnp), offsets, axis=1)
    logits = params[context[:, None], at]
    if logits_at is not None:
      logits = jnp.take_along_axis(logits, logits_at[:, None, None], axis=1)
    return logits, cache

  return seam.BlockDecoder(vocab_size, two_back.init_cache, decode_block)


def place(tokens: tuple[int, ...]) -> tuple[int]:
  """Returns where a table holds the distribution of the next token."""
  fed = np.array([[seam.BOS_ID, *tokens]], np.int32)
  return (int(_digests(fed, np)[0, -1]),)


def _digests(fed, numpy):
  """A number below NUM_ROWS of the tokens up to each slot, [batch, slots]."""
  sums = numpy.cumsum(
      (fed + 2).astype(np.uint32) * _FACTORS[: fed.shape[1]],
      axis=1,
      dtype=np.uint32,
  )
  mixed = (sums ^ (sums >> np.uint32(16))) * np.uint32(0x45D9F3B)
  return (mixed ^ (mixed >> np.uint32(16))) % np.uint32(NUM_ROWS)


def random_tables(
    seed: int, num_tables: int, vocab_size: int, sharpness: float = 1.5
) -> np.ndarray:
  """Logits [tables, NUM_ROWS, vocab] float64."""
  shape = (num_tables, NUM_ROWS, vocab_size)
  return np.random.default_rng(seed).normal(size=shape) * sharpness
