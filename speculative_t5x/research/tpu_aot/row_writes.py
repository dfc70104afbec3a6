# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles writes to a KV cache whose rows are at different positions.

Each of the two forms in `kv_cache` is compiled with the attention that reads
the cache after the write, in one layer.
"""

from collections.abc import Callable

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import t5
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.research.tpu_aot import topology

FORMS = {
    'a scatter': kv_cache.update_rows,
    'a selection': kv_cache.select_rows,
}


def compile_form(
    form: Callable[..., kv_cache.KeysValues],
    config: t5.T5Config,
    place: topology.Topology,
    *,
    rows: int,
    block: int,
    slots: int,
) -> programs.Program:
  """Compile a loop that writes a block per row and attends to the cache.

  The form is one of `FORMS`, and the place one device.
  """
  heads, head_dim = config.num_heads, config.head_dim
  where = place.replicated()
  array = lambda *shape, dtype=config.dtype: jax.ShapeDtypeStruct(
      shape, jnp.dtype(dtype), sharding=where
  )
  cached = array(rows, heads, head_dim, slots)
  query = array(rows, block, heads, head_dim)
  positions = array(rows, dtype=jnp.int32)

  def loop(num_steps, cache, query, positions):
    def step(i, carry):
      cache, query = carry
      new = jnp.moveaxis(query, 1, -1)  # depends on the previous read
      at = jnp.minimum(positions + i, slots - block)
      cache = form(cache, kv_cache.KeysValues(new, new), at)
      weights = jnp.einsum('bmhd,bhdl->bhml', query, cache.keys)
      return cache, jnp.einsum('bhml,bhdl->bmhd', weights, cache.values)

    return lax.fori_loop(0, num_steps, step, (cache, query))

  lowered = jax.jit(loop).lower(
      array(dtype=jnp.int32),
      kv_cache.KeysValues(cached, cached),
      query,
      positions,
  )
  shapes = reading.Shapes([cached.shape], [], vocab_size=-1)
  return programs.compile_loop(lowered.compile, shapes)
