# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads prompts of unequal lengths into the cache of a decoder alone.

All are read from position 0 on, so that padding is behind a prompt and has no
part in what is computed: in chunks of one width, or at once where a prompt
attends to itself in both directions.

Legend: examples, width (of prompts), slots, embed.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import transformer

# `transformer.Decoder.decode_block` with parameters.
Decode = Callable[..., tuple[jax.Array, transformer.Cache, jax.Array]]


def aligned(
    inputs: jax.Array, start_token: int | None
) -> tuple[jax.Array, jax.Array]:
  """Return the tokens of prompts at the left, then id 0, and their numbers.

  The start token, if any, is one of them.
  """
  if start_token is not None:
    inputs = jnp.pad(inputs, ((0, 0), (1, 0)), constant_values=start_token)
  is_token = inputs >= 0
  order = jnp.argsort(~is_token, axis=1, stable=True)
  tokens = jnp.take_along_axis(jnp.maximum(inputs, 0), order, axis=1)
  lengths = jnp.sum(is_token, axis=1, dtype=jnp.int32)
  is_prompt = jnp.arange(inputs.shape[1]) < lengths[:, None]
  return jnp.where(is_prompt, tokens, 0), lengths


@jax.named_scope(input_widths.SCOPE)
def read_in_chunks(
    decode: Decode,
    cache: transformer.Cache,
    tokens: jax.Array,
    lengths: jax.Array,
    chunk: int,
    fed: jax.Array | None = None,
    shown: jax.Array | None = None,
) -> tuple[transformer.Cache, jax.Array | None]:
  """Read prompts, but for the last token of each, which may be missing.

  Args:
    decode: Decodes a block.
    cache: Empty, with a slot for each token, also of the last chunk.
    tokens: [..., width] int32, the width a multiple of the chunk; one example
      has no batch axis.
    lengths: [examples] int32.
    chunk: Tokens that are read at once.
    fed: [..., width, embed], the features of its target at all positions that a
      head is fed; None of others.
    shown: Zeros [..., width, embed] for the features of the positions read;
      None if they are not asked for.
  Returns:
    The cache, and the features of the positions read.
  """
  if fed is not None:
    fed = network.one_later(fed)
  num_chunks = (jnp.max(lengths) - 1 + chunk - 1) // chunk

  def read_chunk(carry):
    index, cache, shown = carry
    at = index * chunk
    cut = lambda x, axis: lax.dynamic_slice_in_dim(x, at, chunk, axis=axis)
    known = None if fed is None else cut(fed, -2)
    # Nothing reads the logits, and the compiler leaves the head out.
    _, cache, new = decode(cut(tokens, -1), at, cache, fed=known)
    if shown is not None:
      shown = lax.dynamic_update_slice_in_dim(
          shown, new[..., :chunk, :], at, axis=-2
      )
    return index + 1, kv_cache.constrain(cache), shown

  _, cache, shown = lax.while_loop(
      lambda carry: carry[0] < num_chunks,
      read_chunk,
      (jnp.int32(0), kv_cache.constrain(cache), shown),
  )
  return cache, shown


def read_at_once(
    decode: Decode,
    empty: Callable[[int], transformer.Cache],
    tokens: jax.Array,
    lengths: jax.Array,
    slots: int,
) -> transformer.Cache:
  """Read prompts that attend to themselves, [..., width] int32.

  From the second layer on, keys depend on all of the prompt, and so cannot be
  read in chunks. Those of the last token are what decoding it will write.

  `empty` returns a cache of some slots; for the others see `read_in_chunks`.
  """
  width = tokens.shape[-1]
  prefix = lengths.reshape(tokens.shape[:-1])

  def read(width: int) -> Any:
    block = tokens[..., :width]
    return decode(block, jnp.int32(0), empty(width), prefix=prefix)[1]

  is_token = jnp.arange(width) < lengths[:, None]
  cache = input_widths.at_smallest(is_token, -1, read)
  extend = lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, slots - width)])
  return kv_cache.constrain(jax.tree.map(extend, cache))
