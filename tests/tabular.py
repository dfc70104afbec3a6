# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A language model that is a table, so that its law is known exactly.

The next token depends on the last two, and both are read from the cache, so
that a stale or misplaced entry changes the law.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import seam
from speculative_t5x import speculation

STALE = -1  # what unwritten slots hold; reading one gives a law of its own


def decoder(vocab_size: int) -> seam.BlockDecoder:
  """Tables [tables, vocab + 1, vocab + 1, vocab] as parameters.

  The context is the table each row uses, [batch]. The cache is the tokens fed,
  [batch, slots].
  """

  def init_cache(context, batch, slots):
    del context
    return jnp.full((batch, slots), STALE, jnp.int32)

  def decode_block(params, context, cache, tokens, positions, logits_at):
    block = tokens.shape[1]
    offsets = positions[:, None] + jnp.arange(block, dtype=jnp.int32)
    write = jax.vmap(
        lambda row, new, at: jax.lax.dynamic_update_slice(row, new, (at,))
    )
    cache = write(cache, tokens, positions)
    read = lambda at: jnp.take_along_axis(cache, jnp.maximum(at, 0), axis=1)
    before = jnp.where(offsets > 0, read(offsets - 1), 0)
    logits = params[context[:, None], before, read(offsets)]
    if logits_at is not None:
      logits = jnp.take_along_axis(logits, logits_at[:, None, None], axis=1)
    return logits, cache

  return seam.BlockDecoder(vocab_size, init_cache, decode_block)


def place(tokens: tuple[int, ...]) -> tuple[int, ...]:
  """Returns where a table holds the distribution of the next token."""
  return ((0, seam.BOS_ID) + tokens)[-2:]


def random_tables(
    seed: int,
    num_tables: int,
    vocab_size: int,
    width: int | None = None,
    sharpness: float = 1.5,
) -> np.ndarray:
  """Logits [tables, vocab + 1, vocab + 1, width] float64.

  The last index of both token axes is what a stale entry would give. The width
  is the vocabulary's unless given.
  """
  shape = (num_tables, vocab_size + 1, vocab_size + 1, width or vocab_size)
  return np.random.default_rng(seed).normal(size=shape) * sharpness


def exact_law(
    probs: np.ndarray, limit: int
) -> dict[tuple[int, ...], float]:
  """Probability of every output, from one table of probabilities.

  Args:
    probs: [vocab + 1, vocab + 1, vocab], rows sum to 1.
    limit: most tokens.
  Returns:
    Probability by output, the end of sequence included.
  """
  law = {}

  def extend(prefix, weight):
    ended = prefix and prefix[-1] == speculation.EOS_ID
    if ended or len(prefix) == limit:
      law[prefix] = weight
      return
    for token, p in enumerate(probs[place(prefix)]):
      if p > 0:
        extend(prefix + (token,), weight * p)

  extend((), 1.0)
  return law


def outputs(vocab_size: int, limit: int) -> list[tuple[int, ...]]:
  """Every output there is, in a fixed order."""
  found = []
  for length in range(1, limit + 1):
    for tokens in itertools.product(range(vocab_size), repeat=length):
      inner = speculation.EOS_ID in tokens[:-1]
      complete = tokens[-1] == speculation.EOS_ID or length == limit
      if complete and not inner:
        found.append(tokens)
  return found
