# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The time to read once the bytes that a decode step must read.

This is a lower bound on the time of a step at batch 1. Bytes are counted from
shapes, and the speed of reading is measured in the same rounds as the steps.
"""

from collections.abc import Callable
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.networks import t5_modules
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import state as state_lib

_UNREAD = re.compile('encoder_decoder_attention/(key|value)/')
_WIDTH = 2048
# Larger than the caches of any processor.
MAX_BYTES = 2**30
_READS = 8  # per round, so that a round takes about as long as other parts


def step_bytes(
    decoder: token_decoder.TokenDecoder, rows: int, inputs_length: int
) -> int:
  """Returns the bytes that one target step must read.

  These are the weights of the decoder and the head, the caches of the rows, and
  the keys and values of the inputs. The kernels that compute the latter are
  read only once per batch and not included.

  Args:
    decoder: the decoder, with its target and the length of outputs.
    rows: rows decoded together.
    inputs_length: tokens per input.
  """
  config = decoder.target.config
  slots = state_lib.cache_slots(decoder.length, 0)
  cached = jax.eval_shape(lambda: t5_modules.init_cache(config, (rows,), slots))
  # The keys and values of the inputs have the cache's shape, with their length.
  inputs = jax.eval_shape(
      lambda: t5_modules.init_cache(config, (rows,), inputs_length)
  )
  weights = step_weights(decoder.target)
  return _nbytes(weights) + _nbytes(cached) + _nbytes(inputs)


def step_weights(model: models.Model) -> list[Any]:
  """Returns the parameters that a decode step reads.

  These are the decoder's parameters without the kernels of cross-attention keys
  and values.
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
  """Programs that read a number of bytes; the fastest gives the read floor.

  The programs are a sum, a vector-matrix product and a matrix-vector product,
  in float32.

  Attributes:
    seconds: seconds to read all bytes once, by program, one value per round.
  """

  def __init__(self, num_bytes: int):
    """Allocates up to 1 GiB; times of more bytes are extrapolated linearly."""
    self.num_bytes = num_bytes
    rows = max(min(num_bytes, MAX_BYTES) // 4 // _WIDTH, 1)
    self._share = num_bytes / (rows * _WIDTH * 4)
    self._programs = _programs(jnp.ones((rows, _WIDTH), jnp.float32))
    for program in self._programs.values():
      jax.block_until_ready(program())
    self.seconds: dict[str, list[float]] = {n: [] for n in self._programs}

  def time_round(self) -> None:
    """Times every program once."""
    for name, program in self._programs.items():
      span = step_times.seconds(program)
      self.seconds[name].append(span / _READS * self._share)

  def floor_s(self) -> float:
    """Returns the median seconds of the fastest program."""
    return min(float(np.median(spans)) for spans in self.seconds.values())


def _programs(matrix: jax.Array) -> dict[str, Callable[[], Any]]:
  rows, columns = matrix.shape
  # Each depends on a zero, so that reads run one after another.
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
  """Returns a program of several reads of a matrix, one after another.

  There is one wait after all reads: a wait after each would be measured too,
  and matters if a read is as short as its launch.
  """
  # The compiler cannot know that the product is 0.
  once = jax.jit(lambda m, last: read(m, 0 * last.ravel()[0]))

  def run() -> jax.Array:
    result = start
    for _ in range(_READS):
      result = once(matrix, result)
    return result

  return run
