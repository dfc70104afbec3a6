# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The decoder's KV cache, written block by block.

Each row writes at its own position. A smaller position rewinds a row: slots at
or past the end of the last written block are stale, are never read, and are
overwritten later. Slots are the last axis, as in T5X's cache; of the layouts
tried, attention was fastest with this one on TPU and on CPU.

Legend: batch (rows), block (positions written per call), slots (cache length).
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import sharding

_KeysValues = TypeVar('_KeysValues')


class KeysValues(NamedTuple):
  """The keys and values of one layer."""

  keys: jax.Array  # [..., heads, head_dim, slots]
  values: jax.Array  # [..., heads, head_dim, slots]


def write_block(
    cache: KeysValues, block: KeysValues, positions: jax.Array
) -> KeysValues:
  """Overwrite the slots `position` to `position + block - 1` of each row.

  Args:
    cache: [..., heads, head_dim, slots].
    block: [..., heads, head_dim, block], same dtype.
    positions: [...] int32 with position + block <= slots. A larger position
      would be clamped, and the write would overwrite valid keys: a block of 3
      at position 4 of 6 slots would be written to slots 3 to 5.
  Returns:
    The cache with the block written; all other slots are bit-equal.
  """
  # Block of 3 at position 2 of 6 slots: slots 2, 3 and 4 are new, slot 5 keeps
  # what an earlier and longer block left there, which nothing reads.
  if not positions.ndim:
    write = lambda c, n: _update(c, n, positions)
    return jax.tree.map(write, cache, block)
  # Different positions per row make the write a scatter. A TPU runs a scatter
  # row by row, so select_rows is faster there; on a CPU a scatter is cheap.
  return lax.platform_dependent(
      cache, block, positions, tpu=select_rows, default=update_rows
  )


def _update(cached: jax.Array, new: jax.Array, position: jax.Array):
  return lax.dynamic_update_slice_in_dim(cached, new, position, axis=-1)


def update_rows(
    cache: KeysValues, block: KeysValues, positions: jax.Array
) -> KeysValues:
  """Write only the slots of each row's block; see `write_block`."""
  write = lambda c, n: jax.vmap(_update)(c, n, positions)
  return jax.tree.map(write, cache, block)


def select_rows(
    cache: KeysValues, block: KeysValues, positions: jax.Array
) -> KeysValues:
  """Rewrite all slots, with new values only in the block; see `write_block`.

  A product with a one-hot matrix moves the block to its slots. It is exact,
  because each sum has at most one nonzero term. The block must be finite.
  """
  num_slots, length = cache.keys.shape[-1], block.keys.shape[-1]
  # Position 2, 5 slots: indices -2 -1 0 1 2 within the block.
  index = jnp.arange(num_slots) - positions[:, None]
  is_new = ((index >= 0) & (index < length))[:, None, None]
  is_place = index[:, None] == jnp.arange(length)[:, None]

  def write(cached, new):
    moved = jnp.einsum(
        'bhdm,bml->bhdl',
        new,
        is_place.astype(new.dtype),
        precision=lax.Precision.HIGHEST,
    )
    return jnp.where(is_new, moved, cached)

  return jax.tree.map(write, cache, block)


def read(cache: KeysValues, num_written: jax.Array) -> KeysValues:
  """Return the cache with the values of unwritten slots replaced by zeros.

  A masked attention weight is exactly 0, but its product with a stale infinite
  value would be NaN. Stale keys are harmless, because masking replaces their
  logits.

  Args:
    cache: [..., heads, head_dim, slots].
    num_written: [...] int32, slots written so far in each row.
  """
  heads, head_dim, num_slots = cache.values.shape[-3:]
  # After a block of 3 at position 2, slots 0 to 4 are written.
  is_written = jnp.arange(num_slots) < num_written[..., None]
  # Heads and head_dim are merged for the selection: with the cache's own shape,
  # XLA:CPU treats the result as a second version of the cache and copies it.
  merged_shape = (*cache.values.shape[:-3], heads * head_dim, num_slots)
  values = jnp.where(
      is_written[..., None, :], cache.values.reshape(merged_shape), 0
  )
  return KeysValues(cache.keys, values.reshape(cache.values.shape))


def commit(
    cache: Sequence[KeysValues],
    block: Sequence[KeysValues],
    paths: jax.Array,
    num_cached: jax.Array,
) -> tuple[KeysValues, ...]:
  """Return the cache with a path behind what each row has cached.

  Args:
    cache: Per layer [examples * beams, heads, head_dim, slots], the beams of an
      example next to each other; one row has no batch axis.
    block: Per layer [examples, heads, head_dim, nodes].
    paths: [examples, beams, length] int32, nodes that are written to the slots
      from `num_cached` on.
    num_cached: [examples] int32, with num_cached + length <= slots.
  """
  examples, beams, _ = paths.shape
  # All rows of an example write at one place, and of one example in place.
  positions = num_cached[0] if examples == 1 else jnp.repeat(num_cached, beams)

  def commit_layer(cache: KeysValues, block: KeysValues) -> KeysValues:
    # A TPU gathers along the last axis element by element.
    new = lax.platform_dependent(
        block, paths, tpu=select_paths, default=take_paths
    )
    if cache.keys.ndim == 3:
      new = jax.tree.map(lambda x: x[0], new)
    return write_block(cache, new, positions)

  return constrain(tuple(map(commit_layer, cache, block)))


def take_paths(block: KeysValues, paths: jax.Array) -> KeysValues:
  """Return nodes of a block, [examples * beams, heads, head_dim, length].

  Args:
    block: [examples, heads, head_dim, nodes].
    paths: [examples, beams, length] int32.
  """
  examples, beams, length = paths.shape
  index = paths.reshape(examples, 1, 1, beams * length)

  def take(x):
    nodes = jnp.take_along_axis(x, index, axis=-1)
    nodes = nodes.reshape(*x.shape[:-1], beams, length)
    return jnp.moveaxis(nodes, -2, 1).reshape(-1, *x.shape[1:-1], length)

  return jax.tree.map(take, block)


def select_paths(block: KeysValues, paths: jax.Array) -> KeysValues:
  """Take nodes by products with a one-hot matrix; see `take_paths`.

  They are exact, as in `select_rows`. The block must be finite.
  """
  index = jnp.arange(block.keys.shape[-1])[:, None]
  is_node = paths[..., None, :] == index

  def select(x):
    nodes = jnp.einsum(
        'ehdn,ebnl->ebhdl',
        x,
        is_node.astype(x.dtype),
        precision=lax.Precision.HIGHEST,
    )
    return nodes.reshape(-1, *nodes.shape[2:])

  return jax.tree.map(select, block)


def constrain(keys_values: _KeysValues) -> _KeysValues:
  """Constrain arrays [..., heads, head_dim, slots] by the rules in force."""
  axes = ('batch', 'heads', 'kv', 'length')
  # One row has no batch axis.
  return jax.tree.map(
      lambda x: sharding.constrain(x, axes[-x.ndim :]), keys_values
  )
