# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The time of reading once what a decode step must read.

No step can be faster than that at batch 1. Bytes are counted, and the speed of
reading is measured beside the steps, in the same rounds.
"""

from collections.abc import Callable
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import loading
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5
from speculative_t5x.walltime import step_times

_UNREAD = re.compile('encoder_decoder_attention/(key|value)/')
_WIDTH = 2048
# Past the caches of any processor; more would only take memory.
MAX_BYTES = 2**30
_READS = 8  # a round, so that it spans as long as other parts do


def step_bytes(
    decoder: token_decoder.TokenDecoder, rows: int, inputs_length: int
) -> int:
  """Bytes that one target step must read.

  The decoder's weights and the head, but not the kernels that make keys and
  values of the inputs; the caches of the rows, and those keys and values.

  Args:
    decoder: the target, and the length of the outputs.
    rows: decoded at once.
    inputs_length: of the inputs.
  """
  config = decoder.target.config
  slots = speculation.cache_slots(decoder.length, 0)
  cached = jax.eval_shape(lambda: t5.init_cache(config, (rows,), slots))
  # Those of the inputs have the cache's shape but for their length.
  inputs = jax.eval_shape(
      lambda: t5.init_cache(config, (rows,), inputs_length)
  )
  weights = step_weights(decoder.target)
  return _nbytes(weights) + _nbytes(cached) + _nbytes(inputs)


def step_weights(model: loading.Model) -> list[Any]:
  """What a step reads of a model's parameters.

  Those of the decoder, but for the kernels that only the inputs go through.
  """
  flat, _ = jax.tree.flatten_with_path(model.params['decoder'])
  return [
      param
      for path, param in flat
      if _UNREAD.search(jax.tree_util.keystr(path, simple=True, separator='/'))
      is None
  ]


def _nbytes(tree: Any) -> int:
  return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


class Readers:
  """Ways to read so many bytes, timed in rounds; the fastest is the floor.

  A sum, and a matrix-vector product from either side, float32.

  Attributes:
    seconds: by way, a value for each round, of reading all bytes once.
  """

  def __init__(self, num_bytes: int):
    """Takes up to 1 GiB; more bytes are reckoned at the speed of that many."""
    self.num_bytes = num_bytes
    rows = max(min(num_bytes, MAX_BYTES) // 4 // _WIDTH, 1)
    self._share = num_bytes / (rows * _WIDTH * 4)
    self._programs = _programs(jnp.ones((rows, _WIDTH), jnp.float32))
    for program in self._programs.values():
      jax.block_until_ready(program())
    self.seconds: dict[str, list[float]] = {n: [] for n in self._programs}

  def time_round(self) -> None:
    """Times every way once more."""
    for name, program in self._programs.items():
      span = step_times.seconds(program)
      self.seconds[name].append(span / _READS * self._share)

  def floor_s(self) -> float:
    """Median seconds of the fastest way."""
    return min(float(np.median(spans)) for spans in self.seconds.values())


def _programs(matrix: jax.Array) -> dict[str, Callable[[], Any]]:
  rows, columns = matrix.shape
  # Each takes a zero that it cannot do without.
  add = lambda m, zero: m.sum() + zero
  from_left = lambda m, zero: (jnp.ones(rows) + zero) @ m
  from_right = lambda m, zero: m @ (jnp.ones(columns) + zero)
  return {
      'sum': _read_often(matrix, jnp.zeros(()), add),
      'vector_matrix': _read_often(matrix, jnp.zeros(columns), from_left),
      'matrix_vector': _read_often(matrix, jnp.zeros(rows), from_right),
  }


def _read_often(
    matrix: jax.Array, start: jax.Array, read: Callable[..., jax.Array]
) -> Callable[[], jax.Array]:
  """Reads of a matrix, each begun when the last has ended.

  They are waited for together: where a read takes no longer than starting one,
  a wait after each would be measured too.
  """
  # The compiler cannot know that it is 0.
  once = jax.jit(lambda m, last: read(m, 0 * last.ravel()[0]))

  def run() -> jax.Array:
    result = start
    for _ in range(_READS):
      result = once(matrix, result)
    return result

  return run
