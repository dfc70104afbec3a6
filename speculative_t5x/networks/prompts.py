# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads prompts of unequal lengths into the cache of a decoder alone.

An output continues its prompt in the cache, and the last token of a prompt is
the first one that the loop feeds. All are read from position 0 on, so that
padding is behind a prompt and has no part in what is computed: in chunks of one
width, or at once where a prompt attends to itself in both directions.

Legend: examples, rows, width (of prompts), slots, embed.
"""

from collections.abc import Callable
import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import contracts

CHUNK = 64  # tokens of a prompt that are read at once

# A `transformer_network.TransformerNetwork` without an encoder.
Network = Any
# `transformer.Decoder.decode_block` with parameters.
Decode = Callable[..., tuple[jax.Array, transformer.Cache, jax.Array]]


def start(
    decoder: Network,
    params: contracts.Params,
    inputs: jax.Array,
    rows: int,
    slots: int,
    fed: jax.Array | None = None,
    shows_features: bool = False,
) -> contracts.Started:
  """Read prompts; see `network.Network.start`.

  A row without any token, which only fills a batch, begins with id 0.

  Args:
    decoder: The network, likewise below.
    params, inputs, rows, slots: See `network.Network.start`.
    fed: Features of its target at all positions, of a head; None of others.
    shows_features: Whether the last features are asked for.
  """
  tokens, lengths = aligned(inputs, decoder.start_token)
  # The loop feeds the last token of a prompt, in the first of its own slots.
  slots += tokens.shape[1] - 1
  cache, shown = _read(
      decoder, params, tokens, lengths, slots, fed, shows_features
  )
  examples, last = len(tokens), jnp.maximum(lengths - 1, 0)
  first_tokens = jnp.take_along_axis(tokens, last[:, None], axis=1)[:, 0]
  if rows != examples:
    of_rows = lambda x: jnp.repeat(x, rows // examples, axis=0)
    last, first_tokens = of_rows(last), of_rows(first_tokens)
    # One example has no batch axis, its rows have.
    cache = jax.tree.map(
        lambda x: of_rows(x if examples > 1 else x[None]), cache
    )
  started = contracts.Started(
      None, kv_cache.constrain(cache), last, first_tokens, shown
  )
  if not shows_features:
    return started
  before = jnp.maximum(last - 1, 0)[:, None, None]
  shown = jnp.repeat(shown, rows // examples, axis=0)
  features = jnp.take_along_axis(shown, before, axis=1)
  has_before = (last > 0)[:, None, None]
  return started._replace(last_features=jnp.where(has_before, features, 0))


def _read(
    decoder: Network,
    params: contracts.Params,
    tokens: jax.Array,
    lengths: jax.Array,
    slots: int,
    fed: jax.Array | None,
    shows_features: bool,
) -> tuple[transformer.Cache, jax.Array | None]:
  """Return the cache and, if asked for, the features of positions read."""
  examples, width = tokens.shape
  batch_shape = () if examples == 1 else (examples,)
  empty = functools.partial(decoder.init_cache, examples)
  decode = functools.partial(decoder.apply, params, method='decode_block')
  if decoder.prefix_bidirectional:
    if fed is not None or shows_features:
      raise ValueError(
          'A head on last features needs a target whose prompts are causal,'
          ' and this one has prefix_bidirectional. Choose another drafter.'
      )
    tokens = tokens.reshape(*batch_shape, width)
    return read_at_once(decode, empty, tokens, lengths, slots), None
  chunk = min(CHUNK, width)
  tokens = jnp.pad(tokens, ((0, 0), (0, -width % chunk)))
  width = tokens.shape[1]
  tokens, shown = tokens.reshape(*batch_shape, width), None
  if fed is not None:
    fed = fed.reshape(*tokens.shape, -1)
  if shows_features:
    shown = jnp.zeros((*tokens.shape, decoder.last_width), decoder.dtype)
  # The last chunk may reach past all that is decoded.
  cache, shown = read_in_chunks(
      decode, empty(max(width, slots)), tokens, lengths, chunk, fed, shown
  )
  if shown is not None:
    shown = sharding.constrain(
        shown.reshape(examples, width, -1), ('batch', 'length', 'embed')
    )
  return cache, shown


def score(
    decoder: Network,
    params: contracts.Params,
    inputs: jax.Array,
    outputs: jax.Array,
    rngs: Any = None,
    fed: jax.Array | None = None,
    anchors: jax.Array | None = None,
) -> network.Scored:
  """Read given outputs after their prompts, as `score_with_features` does.

  `rngs` are those of Flax for dropout; None for none.
  """
  tokens, lengths = aligned(inputs, decoder.start_token)
  # A row without any token begins with id 0, as in `start`.
  lengths = jnp.maximum(lengths, 1)
  width, length = tokens.shape[1], outputs.shape[1]
  # Each output lies behind its prompt, as in decoding.
  index = jnp.arange(width + length - 1) - lengths[:, None]
  of_output = jnp.take_along_axis(
      jnp.maximum(outputs, 0), jnp.clip(index, 0, length - 1), axis=1
  )
  tokens = jnp.pad(tokens, ((0, 0), (0, length - 1)))
  tokens = jnp.where(index < 0, tokens, of_output)
  slots = jnp.arange(tokens.shape[1])
  mask = slots <= slots[:, None]
  if decoder.prefix_bidirectional:
    mask = mask | (slots < lengths[:, None, None])
  apply = functools.partial(decoder.apply, params)
  drops = dict(drop=rngs is not None, rngs=rngs)
  if anchors is not None:
    anchors += lengths[:, None] - 1
    mask = jnp.broadcast_to(mask, (len(tokens), *mask.shape[-2:]))
    logits, _ = apply(tokens, mask, anchors, fed=fed, **drops, method='read')
    return network.Scored(logits, None, None)
  x = apply(tokens, mask, fed=fed, **drops, method='score')
  # The logits of an output's first token are at the last one of its prompt.
  at = lengths[:, None] - 1 + jnp.arange(length)
  of_outputs = jnp.take_along_axis(x, at[..., None], axis=1)
  logits, shown = apply(of_outputs, method='logits_of')
  return network.Scored(logits, shown, apply(x, method='shown'))


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
