# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A language model whose next token depends on every token before it.

A digest of all tokens fed so far selects a row of a table, so one stale,
missing or misplaced entry of the cache changes the distribution. The tables of
`table_model` depend on two tokens only, which could hide such an entry.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import t5
from speculative_t5x.testing import table_model

NUM_ROWS = 1021  # a prime
_MOST_SLOTS = 1024
# Odd, so that no two tokens at a position have the same product.
_FACTORS = (
    np.random.default_rng(0).integers(2**32, size=_MOST_SLOTS, dtype=np.uint32)
    | 1
)


@dataclasses.dataclass(frozen=True)
class Model(table_model.Cached):
  """A model with tables [tables, NUM_ROWS, vocab] as parameters."""

  vocab_size: int

  def look_up(self, params, tables, cache, offsets):
    """Return logits of the tokens after `offsets`, from all tokens fed."""
    at = jnp.take_along_axis(_digests(cache, jnp), offsets, axis=1)
    return params[tables, at]


def place(tokens: tuple[int, ...]) -> tuple[int]:
  """Return where a table holds the distribution of the next token."""
  fed = np.array([[t5.SPECIAL_IDS.start, *tokens]], np.int32)
  return (int(_digests(fed, np)[0, -1]),)


def _digests(fed, numpy):
  """Return a number below NUM_ROWS per slot, of the tokens up to it."""
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
  """Return logits [tables, NUM_ROWS, vocab] float64."""
  shape = (num_tables, NUM_ROWS, vocab_size)
  return np.random.default_rng(seed).normal(size=shape) * sharpness
