# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The decoder's cache of keys and values, written a block at a time.

A row writes at its own position and is rewound by passing a smaller one: what
lies at or past the end of the block last written is stale, is never read, and
is overwritten when decoding gets there. Slots come last, as in T5X's cache:
of the layouts tried it attends fastest on TPU and on CPU.

Legend: batch (rows), block (positions written at once), slots (cache length).
"""

from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp


class KeysValues(NamedTuple):
  """Keys and values of one layer."""

  keys: jax.Array  # [..., heads, head_dim, slots]
  values: jax.Array  # [..., heads, head_dim, slots]


def write_block(
    cache: KeysValues, block: KeysValues, positions: jax.Array
) -> KeysValues:
  """Overwrites the slots `position` to `position + block - 1` of each row.

  Args:
    cache: [..., heads, head_dim, slots].
    block: [..., heads, head_dim, block], same dtype.
    positions: [...] int32 with position + block <= slots: a start past that
      would be clamped and would destroy valid keys.
  Returns:
    The cache with the block written; all other slots are bit-equal.
  """
  if not positions.ndim:
    write = lambda c, n: _update(c, n, positions)
    return jax.tree.map(write, cache, block)
  # Rows that each start elsewhere are a scatter, which a TPU does one after
  # another, and which a CPU does in no time.
  return lax.platform_dependent(
      cache, block, positions, tpu=select_rows, default=update_rows
  )


def _update(cached: jax.Array, new: jax.Array, position: jax.Array):
  return lax.dynamic_update_slice_in_dim(cached, new, position, axis=-1)


def update_rows(
    cache: KeysValues, block: KeysValues, positions: jax.Array
) -> KeysValues:
  """Writes the slots of each row and touches no others; see `write_block`."""
  write = lambda c, n: jax.vmap(_update)(c, n, positions)
  return jax.tree.map(write, cache, block)


def select_rows(
    cache: KeysValues, block: KeysValues, positions: jax.Array
) -> KeysValues:
  """Writes every slot, most of them as they were; see `write_block`.

  The block is moved to its slots by a product with ones and zeros, which is
  exact: one term of each sum is not 0. It must be finite.
  """
  num_slots, length = cache.keys.shape[-1], block.keys.shape[-1]
  index = jnp.arange(num_slots) - positions[:, None]  # of slots in the block
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
  """The cache with the values of unwritten slots replaced by zeros.

  Keys need no such care: their logits are masked by selection. A masked
  weight is exactly 0, but 0 times a stale infinity would not be.

  Args:
    cache: [..., heads, head_dim, slots].
    num_written: [...] int32, slots written so far in each row.
  """
  heads, head_dim, num_slots = cache.values.shape[-3:]
  is_written = jnp.arange(num_slots) < num_written[..., None]
  # Heads and head_dim are merged for the selection: in the cache's own shape
  # XLA:CPU takes the result for a second version of the cache and copies it.
  merged_shape = (*cache.values.shape[:-3], heads * head_dim, num_slots)
  values = jnp.where(
      is_written[..., None, :], cache.values.reshape(merged_shape), 0
  )
  return KeysValues(cache.keys, values.reshape(cache.values.shape))
