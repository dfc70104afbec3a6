# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A language model that is a table, so that its distribution is known exactly.

The next token depends on the last two, and both are read from the cache, so
that a stale or misplaced entry changes the distribution.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts

# The value of unwritten slots. Tables have a distribution of its own for it.
STALE = -1

SPECIAL_IDS = contracts.SpecialIds(end=1, padding=0, start=0)


class Cached:
  """Inputs and cache that all table models share.

  The inputs are the table each example uses, [examples], and so is the memory.
  The cache is the tokens fed, [rows, slots]. The last features are the logits.
  """

  vocab_size: int
  special_ids = SPECIAL_IDS

  def start(self, params, inputs, rows, slots) -> contracts.Started:
    cache = jnp.full((rows, slots), STALE, jnp.int32)
    zeros = jnp.zeros((rows,), jnp.int32)
    return contracts.Started(inputs, cache, zeros, zeros)

  def decode(self, params, memory, cache, tokens, positions, at):
    rows, block = tokens.shape
    offsets = positions[:, None] + jnp.arange(block, dtype=jnp.int32)
    # The slots hold the whole block, or the write would be clamped.
    write = jax.vmap(
        lambda row, new, at: jax.lax.dynamic_update_slice(row, new, (at,))
    )
    cache = write(cache, tokens, positions)
    tables = jnp.repeat(memory, rows // memory.shape[0])
    logits = self.look_up(params, tables[:, None], cache, offsets)
    if at is not None:
      logits = jnp.take_along_axis(logits, at[:, None, None], axis=1)
    return logits, cache


  def start_with_features(
      self, params, inputs, rows, slots
  ) -> contracts.Started:
    started = self.start(params, inputs, rows, slots)
    dtype = jax.tree.leaves(params)[0].dtype
    zeros = jnp.zeros((rows, 1, self.vocab_size), dtype)
    return started._replace(last_features=zeros)

  def decode_with_features(self, *args):
    logits, cache = self.decode(*args)
    return logits, cache, logits


@dataclasses.dataclass(frozen=True)
class Model(Cached):
  """A model with tables [tables, vocab + 1, vocab + 1, vocab] as parameters."""

  vocab_size: int

  def look_up(self, params, tables, cache, offsets):
    """Return logits of the tokens after `offsets`, from the last two."""
    read = lambda at: jnp.take_along_axis(cache, jnp.maximum(at, 0), axis=1)
    before = jnp.where(offsets > 0, read(offsets - 1), 0)
    return params[tables, before, read(offsets)]

  def share_rows(self, cache, examples) -> jax.Array:
    return cache  # `commit` moves its rows

  def separate_rows(self, cache) -> jax.Array:
    return cache

  def new_block(self, cache, examples, nodes) -> jax.Array:
    return jnp.full((examples, nodes), STALE, jnp.int32)

  def decode_tree(
      self, params, memory, cache, block, nodes, first, count, num_cached
  ) -> tuple[jax.Array, jax.Array]:
    """See `contracts.DecodesTrees.decode_tree`; the block is the tokens fed."""
    new = slice(first, first + count)
    block = block.at[:, new].set(nodes.tokens[:, new])
    places = nodes.positions[:, None], nodes.positions[:, new, None]
    is_before = nodes.sees[:, new] & (places[0] == places[1] - 1)
    of_block = jnp.take_along_axis(block, jnp.argmax(is_before, -1), axis=1)
    # What a root follows is the last token of its row.
    examples = jnp.arange(len(memory), dtype=jnp.int32)[:, None]
    rows = cache.reshape(len(memory), -1, cache.shape[-1])
    last = jnp.maximum(num_cached - 1, 0)[:, None]
    of_row = rows[examples, nodes.roots[:, new], last]
    of_row = jnp.where(num_cached[:, None] > 0, of_row, 0)
    before = jnp.where(jnp.any(is_before, -1), of_block, of_row)
    return params[memory[:, None], before, block[:, new]], block

  def commit(self, cache, block, rows, paths, num_cached) -> jax.Array:
    examples, beams = rows.shape
    cache = cache.reshape(examples, beams, -1)
    cache = jnp.take_along_axis(cache, rows[..., None], axis=1)
    tokens = jnp.take_along_axis(block[:, None], paths, axis=-1)
    write = jax.vmap(
        lambda row, new, at: jax.lax.dynamic_update_slice(
            row, new, (jnp.zeros_like(at), at)
        )
    )
    return write(cache, tokens, num_cached).reshape(examples * beams, -1)


@dataclasses.dataclass(frozen=True)
class TextModel(Model):
  """A model with two tables, whose inputs are token ids, [examples, any].

  It uses the second table for inputs of an odd number of tokens.
  """

  def start(self, params, inputs, rows, slots) -> contracts.Started:
    is_token = jnp.asarray(inputs) >= 0
    tables = jnp.sum(is_token, axis=1, dtype=jnp.int32) % 2
    return super().start(params, tables, rows, slots)


def place(tokens: tuple[int, ...]) -> tuple[int, ...]:
  """Return where a table holds the distribution of the next token."""
  return ((0, SPECIAL_IDS.start) + tokens)[-2:]


_SHARPNESS = 1.5  # of random logits: far from uniform, far from argmax


def random_logits(
    seed: int,
    num_tables: int,
    vocab_size: int,
    width: int | None = None,
) -> np.ndarray:
  """Return logits [tables, vocab + 1, vocab + 1, width] float64.

  The last index of both token axes is what a stale entry would give. The width
  is the vocabulary's unless given.
  """
  shape = (num_tables, vocab_size + 1, vocab_size + 1, width or vocab_size)
  return np.random.default_rng(seed).normal(size=shape) * _SHARPNESS
