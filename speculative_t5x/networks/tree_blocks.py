# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of an example that continue each other, as beams do.

Their nodes lie in a block beside the cache, see `contracts.DecodesTrees`. What
they have cached stays where it was written, and a table says where the past of
each row lies.

Legend: examples, rows (per example), slots (of a row), nodes (of the block).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.networks import kv_cache
from speculative_t5x.speculation import beam_rows
from speculative_t5x.speculation import contracts


class SharedRows(NamedTuple):
  """A cache whose rows hold parts of each other's past.

  A row writes behind all that is cached of its example, so that nothing is
  overwritten that another row continues.

  Attributes:
    layers: Per layer, [examples * rows, heads, head_dim, slots].
    holders: [examples, rows, slots] int32. Of a row, the row that holds each
      slot of its past; itself from the first slot on that is not cached.
  """

  layers: contracts.Cache
  holders: jax.Array


def share(cache: contracts.Cache, examples: int) -> SharedRows:
  """Return a cache in which each row holds its own past."""
  _, rows, *_, slots = by_example(cache, examples)[0].keys.shape
  index = jnp.arange(rows, dtype=jnp.int32)[:, None]
  return SharedRows(cache, jnp.broadcast_to(index, (examples, rows, slots)))


def separate(cache: SharedRows) -> contracts.Cache:
  """Return the layers with the past of each row in the row itself."""
  examples, rows, slots = cache.holders.shape
  holders = cache.holders[:, :, None, None]

  def take(x: jax.Array) -> jax.Array:
    x = x.reshape(examples, rows, *x.shape[-3:])
    options = [x[:, row : row + 1] for row in range(rows)]
    return beam_rows.choose(holders, options).reshape(-1, *x.shape[-3:])

  return jax.tree.map(take, cache.layers)


def located(
    cache: contracts.Cache, nodes: contracts.Nodes
) -> tuple[contracts.Cache, contracts.Nodes]:
  """Return layers, and nodes whose roots say where each slot of them lies.

  The roots become [examples, nodes, slots] int32, or one for all slots.
  """
  roots = nodes.roots[..., None]
  if not isinstance(cache, SharedRows):
    return cache, nodes._replace(roots=roots)
  roots = jnp.take_along_axis(cache.holders, roots, axis=1)
  return cache.layers, nodes._replace(roots=roots)


def commit(
    cache: contracts.Cache,
    block: contracts.Cache,
    rows: jax.Array,
    paths: jax.Array,
    num_cached: jax.Array,
) -> contracts.Cache:
  """Return the next cache; see `contracts.DecodesTrees.commit`."""
  if not isinstance(cache, SharedRows):  # one row, which continues itself
    return kv_cache.commit(cache, block, paths, num_cached)
  layers, holders = cache
  slots = jnp.arange(holders.shape[-1], dtype=jnp.int32)
  holders = jnp.where(
      slots < num_cached[:, None, None],
      jnp.take_along_axis(holders, rows[..., None], axis=1),
      jnp.arange(rows.shape[1], dtype=jnp.int32)[:, None],
  )
  return SharedRows(kv_cache.commit(layers, block, paths, num_cached), holders)


def by_example(cache: contracts.Cache, examples: int) -> contracts.Cache:
  """Return a cache as [examples, rows per example, heads, head_dim, slots]."""
  return jax.tree.map(lambda x: x.reshape(examples, -1, *x.shape[-3:]), cache)
