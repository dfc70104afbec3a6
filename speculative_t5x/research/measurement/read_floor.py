# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The time to read once the bytes that a decode step must read.

This is a lower bound on the time of a step at batch 1. Bytes are counted from
shapes, and the speed of reading is measured in the same rounds as the steps.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import state as state_lib

_WIDTH = 2048
# Larger than the caches of any processor.
MAX_BYTES = 2**30
_READS = 8  # per round, so that a round takes about as long as other parts


def step_bytes(
    decoder: token_decoder.TokenDecoder, rows: int, inputs_length: int
) -> int:
  """Return the bytes that one target step must read.

  Weights that compute something of the inputs are read only once per batch and
  not included, and neither is a table of which a step gathers a few rows. The
  caches are, and what was computed of the inputs.
  """
  model = decoder.target_model
  slots = state_lib.cache_slots(decoder.options.max_tokens, 0)
  # Without where they lie: a program of several devices is another.
  params = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), decoder.target.params
  )
  inputs = jnp.ones((rows, inputs_length), jnp.int32)
  start = lambda params: model.start(params, inputs, rows, slots)
  started = jax.eval_shape(start, params)
  kept = started.memory, started.cache
  tokens, at = jnp.ones((rows, 1), jnp.int32), jnp.zeros((rows,), jnp.int32)
  decode = lambda *given: model.decode(*given, tokens, at, None)
  is_read = _read_whole(jax.make_jaxpr(decode)(params, *kept).jaxpr)
  # The inputs of the program begin with the parameters.
  weights = zip(jax.tree.leaves(params), is_read, strict=False)
  return memory.num_bytes_of([[x for x, read in weights if read], kept])


def _read_whole(jaxpr: Any) -> list[bool]:
  """Return which inputs of a program are read, not only rows of them."""
  read = set()
  for equation in jaxpr.eqns:
    operands = equation.invars
    inner = equation.params.get('jaxpr')
    if equation.primitive.name == 'gather':
      operands = operands[1:]
    elif inner is not None:
      inside = _read_whole(getattr(inner, 'jaxpr', inner))
      operands = [x for x, is_read in zip(operands, inside) if is_read]
    read.update(map(id, operands))
  return [id(x) in read for x in jaxpr.invars]


class FloorReader:
  """A program that reads a number of bytes, timed in rounds.

  It is a matrix-vector product in float32, which on CPU is faster than a sum
  and than a vector-matrix product.

  Attributes:
    seconds: Seconds to read all bytes once, one value per round.
  """

  def __init__(self, num_bytes: int):
    """Allocate up to 1 GiB; times of more bytes are extrapolated linearly."""
    self.num_bytes = num_bytes
    rows = max(min(num_bytes, MAX_BYTES) // 4 // _WIDTH, 1)
    self._share = num_bytes / (rows * _WIDTH * 4)
    self._matrix = jnp.ones((rows, _WIDTH), jnp.float32)
    self.seconds: list[float] = []
    jax.block_until_ready(self._read_often())

  def time_round(self) -> None:
    """Time the program once."""
    span = step_times.seconds(self._read_often)
    self.seconds.append(span / _READS * self._share)

  def floor_s(self) -> float:
    """Return the median seconds."""
    return float(np.median(self.seconds))

  def _read_often(self) -> jax.Array:
    """Read the matrix several times, one after another.

    There is one wait after all reads: a wait after each would be measured too,
    and matters if a read is as short as its launch.
    """
    result = jnp.zeros(1)
    for _ in range(_READS):
      result = _read(self._matrix, result)
    return result


@jax.jit
def _read(matrix: jax.Array, last: jax.Array) -> jax.Array:
  """Return the sums of the rows of a matrix, after the last read."""
  # The compiler cannot know that the product is 0.
  return matrix @ (jnp.ones(_WIDTH) + 0 * last[0])
