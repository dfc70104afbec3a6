# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Nodes of trees in a block beside the cache, see `contracts.DecodesTrees`.

A node attends to the cached slots of one row of its example and to its path in
the block. Siblings have one position, so that a key's place is not its position
there; in the cache it is.

Legend: examples, rows (per example), slots (of a row), nodes (that are
decoded), block (all nodes), keys (slots of a row, then the block).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.networks import kv_cache
from speculative_t5x.speculation import contracts


class Sight(NamedTuple):
  """What nodes may attend to.

  Attributes:
    at: [examples, nodes] int32, positions of the nodes.
    roots: [examples, nodes] int32, the row that each attends to.
    key_positions: [examples, keys] int32.
    mask: [examples, nodes, keys] bool, True where attention is allowed.
    num_cached: [examples, rows] int32, slots that hold keys.
  """

  at: jax.Array
  roots: jax.Array
  key_positions: jax.Array
  mask: jax.Array
  num_cached: jax.Array

  def attended(self, cache: kv_cache.KeysValues) -> kv_cache.KeysValues:
    """Return the cache of a layer with zeros for the values of other slots."""
    return kv_cache.read(cache, self.num_cached)


def sight_of(
    nodes: contracts.Nodes,
    first: int,
    count: int,
    cache: kv_cache.KeysValues,
    num_cached: jax.Array,
) -> Sight:
  """Return what some nodes may attend to.

  Args:
    nodes: All nodes of the block.
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
  return Sight(
      nodes.positions[:, new],
      nodes.roots[:, new],
      jnp.concatenate([slots, nodes.positions], axis=1),
      jnp.concatenate([is_cached, nodes.sees[:, new]], axis=-1),
      jnp.broadcast_to(num_cached[:, None], (examples, rows)),
  )


def by_example(cache: contracts.Cache, examples: int) -> contracts.Cache:
  """Return a cache as [examples, rows per example, heads, head_dim, slots]."""
  return jax.tree.map(lambda x: x.reshape(examples, -1, *x.shape[-3:]), cache)


def write(
    block: kv_cache.KeysValues, new: kv_cache.KeysValues, first: int
) -> kv_cache.KeysValues:
  """Overwrite the nodes of a block from a static one on."""
  put = lambda old, new: old.at[..., first : first + new.shape[-1]].set(new)
  return jax.tree.map(put, block, new)
