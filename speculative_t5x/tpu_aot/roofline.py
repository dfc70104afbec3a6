# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The least time of a call: bytes over bandwidth, operations over the peak.

Counted are what every call must read, the weights of the decoder and the
caches, and the products with either. No call can be faster; what it takes
besides, the starts of its many small operations above all, is not in here.

Legend: rows (decoded at once), block (positions of a call), slots.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from speculative_t5x import analysis
from speculative_t5x import loading
from speculative_t5x.paper import published
from speculative_t5x.tpu_aot import chips
from speculative_t5x.walltime import read_floor


@dataclasses.dataclass(frozen=True)
class Call:
  """What one call of a decoder needs, on each device.

  Attributes:
    weight_bytes: of the decoder and the head.
    cache_bytes: of its own keys and values, and those of the inputs.
    operations: in products.
  """

  weight_bytes: int
  cache_bytes: int
  operations: int

  def seconds(self, chip: chips.Chip) -> float:
    """The longer of reading and computing."""
    num_bytes = self.weight_bytes + self.cache_bytes
    return max(num_bytes / chip.bandwidth, self.operations / chip.peak)


def count(
    model: loading.Model, *, rows: int, block: int, slots: int,
    inputs_length: int,
) -> Call:  # fmt: skip
  """Counts one call.

  Args:
    model: whose parameters say how they lie on devices.
    rows: on one device.
    block: positions a row.
    slots: of the cache, all of which are read.
    inputs_length: of the inputs.
  """
  num_weights = sum(map(_local_size, read_floor.step_weights(model)))
  itemsize = jnp.dtype(model.config.dtype).itemsize
  # Of one position: a key and a value in every layer.
  cached = 2 * _local_heads(model) * model.config.head_dim
  cached *= model.config.num_decoder_layers
  positions = slots + inputs_length
  return Call(
      weight_bytes=num_weights * itemsize,
      cache_bytes=rows * positions * cached * itemsize,
      operations=2 * rows * block * (num_weights + positions * cached),
  )


def _local_size(param: jax.ShapeDtypeStruct) -> int:
  return math.prod(param.sharding.shard_shape(param.shape))


def _local_heads(model: loading.Model) -> int:
  """Heads that a device holds."""
  out = model.params['decoder']['layers_0']['self_attention']['out']['kernel']
  joined, _ = out.sharding.shard_shape(out.shape)
  return joined // model.config.head_dim


def speedup(
    row: published.Row, plain_s: float, draft_s: float, verify_s: float
) -> float:
  """Plain over speculative time a token, at a row's alpha and gamma.

  Theorem 3.8 of Leviathan et al. (2023) with the cost of verifying in it.

  Args:
    row: of Table 2.
    plain_s: of one target call on one position; any unit.
    draft_s: of one draft call.
    verify_s: of one target call on gamma + 1 positions.
  """
  tokens = analysis.expected_tokens(row.alpha, row.gamma)
  return float(tokens * plain_s / (row.gamma * draft_s + verify_s))
