# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the keys of self-attention lie, and which of them queries see.

    Here         in the call: of an encoder, of given outputs
    InCache      in the cache, to which the call writes its own
    BesideCache  in the cache, and of nodes of trees in a block beside it

All have the positions of queries and keys, and a mask. A layer gives `put` what
it has kept and the new keys, and `attend` what it returned.

A node of a tree attends to the cached slots of one row of its example and to
its path in the block. Siblings have one position, so that a key's place is not
its position there; in the cache it is.

Legend: examples, rows (per example), length (query positions), slots (of a
row), nodes (that are decoded), block (all nodes), keys (slots of a row, then
the block).
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.networks import attention
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import rope
from speculative_t5x.speculation import contracts


class Sight(NamedTuple):
  """Which keys the queries of a layer see.

  Attributes:
    mask: Bool, broadcastable to [..., length, keys].
    bias: [..., heads, length, keys], or None.
    rotation: Of queries and new keys, or None.
  """

  mask: jax.Array
  bias: jax.Array | None
  rotation: rope.Tables | None


@dataclasses.dataclass(frozen=True)
class Here:
  """Keys of the call alone.

  Attributes:
    at: [..., length] int32, positions of the queries, and here of the keys.
    mask: Bool, broadcastable to [..., length, keys]; True where a query may
      attend to a key.
    num_kept: How many of the first positions have keys; None for all (static).
  """

  at: jax.Array
  mask: jax.Array
  num_kept: int | None = None

  @property
  def key_positions(self) -> jax.Array:
    """Positions of the keys, [..., keys] int32."""
    return self.at

  def put(
      self, kept: Any, new: kv_cache.KeysValues
  ) -> tuple[Any, kv_cache.KeysValues]:
    """Return what a layer keeps with new keys, and what it attends to."""
    return kept, new

  def attend(
      self,
      module: attention.Attention,
      query: jax.Array,
      attended: kv_cache.KeysValues,
      sight: Sight,
      inputs: attention.Keys | None,
      drop: bool,
  ) -> jax.Array:
    """Attend to what `put` returned, and in the same softmax to inputs."""
    own = attention.Keys(attended, sight.mask, sight.bias)
    if inputs is None:
      return module.attend(query, own, drop=drop)
    return module.attend_to_inputs(query, inputs, own, drop)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InCache(Here):
  """Keys in the cache of a layer; see `kv_cache`.

  Attributes:
    positions: [...] int32 in [0, slots - num_kept], the position of each row's
      first query; a scalar is that of all rows.
  """

  positions: jax.Array

  @property
  def key_positions(self) -> jax.Array:
    return jnp.arange(self.mask.shape[-1])

  def put(
      self, kept: kv_cache.KeysValues, new: kv_cache.KeysValues
  ) -> tuple[kv_cache.KeysValues, kv_cache.KeysValues]:
    cache = kv_cache.write_block(kept, new, self.positions)
    return cache, kv_cache.read(cache, self.positions + self.num_kept)


def in_cache(
    positions: jax.Array,
    block: int,
    length: int,
    num_slots: int,
    prefix: jax.Array | None,
) -> InCache:
  """Return the place of the keys of a block of tokens.

  Args:
    positions: See `InCache`.
    block: Tokens per row.
    length: Queries per row, of which those behind the tokens pad.
    num_slots: Slots of the cache.
    prefix: See `transformer.Decoder.decode_block`.
  """
  # Padding positions of the block take the position of its last token.
  at = positions[..., None] + jnp.minimum(jnp.arange(length), block - 1)
  slots = jnp.arange(num_slots)
  # A slot is its position, so that stale ones are those behind a query.
  mask = slots <= at[..., None]
  if prefix is not None:
    mask |= slots < prefix[..., None, None]
  return InCache(at, mask, block, positions=positions)


@dataclasses.dataclass(frozen=True)
class BesideCache:
  """Keys of nodes in a block, beside those in the cache of a layer.

  A layer has kept its cache, [examples, rows, heads, head_dim, slots], and its
  block, [examples, heads, head_dim, nodes].

  Attributes:
    at: [examples, nodes] int32, positions of the nodes.
    mask: [examples, nodes, keys] bool.
    key_positions: [examples, keys] int32.
    roots: [examples, nodes, slots or 1] int32, the row that holds a slot.
    num_cached: [examples, rows] int32, slots that hold keys.
    first: The first node that is decoded (static).
  """

  at: jax.Array
  mask: jax.Array
  key_positions: jax.Array
  roots: jax.Array
  num_cached: jax.Array
  first: int
  num_kept = None

  def put(
      self,
      kept: tuple[kv_cache.KeysValues, kv_cache.KeysValues],
      new: kv_cache.KeysValues,
  ) -> tuple[kv_cache.KeysValues, Any]:
    cache, block = kept
    places = slice(self.first, self.first + new.keys.shape[-1])
    write = lambda old, new: old.at[..., places].set(new)
    block = jax.tree.map(write, block, new)
    return block, (kv_cache.read(cache, self.num_cached), block)

  def attend(
      self,
      module: attention.Attention,
      query: jax.Array,
      attended: Any,
      sight: Sight,
      inputs: attention.Keys | None,
      drop: bool,
  ) -> jax.Array:
    del drop
    (cache, block), mask = attended, sight.mask
    if inputs is not None:  # they are further nodes, which all see
      join = lambda *x: jnp.concatenate(x, axis=-1)
      block = jax.tree.map(join, block, inputs.keys_values)
      shape = *mask.shape[:-1], inputs.mask.shape[-1]
      mask = join(mask, jnp.broadcast_to(inputs.mask, shape))
    return module.attend_tree(
        query, cache, block, roots=self.roots, mask=mask, bias=sight.bias
    )


Place = Here | BesideCache


def beside_cache(
    nodes: contracts.Nodes,
    first: int,
    count: int,
    cache: kv_cache.KeysValues,
    num_cached: jax.Array,
) -> BesideCache:
  """Return the place of some nodes' keys.

  Args:
    nodes: All nodes of the block, see `tree_blocks.located`.
    first: The first one that is decoded.
    count: How many are.
    cache: Of a layer, [examples, rows, heads, head_dim, slots].
    num_cached: [examples] int32, slots of each row that nodes see.
  """
  new = slice(first, first + count)
  examples, rows, *_, num_slots = cache.keys.shape
  slots = jnp.arange(num_slots, dtype=jnp.int32)
  is_cached = jnp.broadcast_to(
      slots < num_cached[:, None, None], (examples, count, num_slots)
  )
  slots = jnp.broadcast_to(slots, (examples, num_slots))
  return BesideCache(
      nodes.positions[:, new],
      jnp.concatenate([is_cached, nodes.sees[:, new]], axis=-1),
      jnp.concatenate([slots, nodes.positions], axis=1),
      nodes.roots[:, new],
      jnp.broadcast_to(num_cached[:, None], (examples, rows)),
      first,
  )
