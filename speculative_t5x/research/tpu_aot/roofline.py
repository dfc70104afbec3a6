# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Roofline time of a call: bytes over bandwidth or operations over the peak.

The bytes are those that every call must read: the decoder's weights and the
caches. The operations are the products with both. The roofline is a lower bound
on the time; it leaves out other costs, mainly the launches of many small
operations.

Legend: rows (decoded together), block (positions per call), slots.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.paper import published
from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.speculation import theory


@dataclasses.dataclass(frozen=True)
class Call:
  """The bytes and operations of one decoder call, per device.

  Attributes:
    weight_bytes: weights of the decoder and the head.
    cache_bytes: keys and values of self-attention and of cross-attention.
    operations: operations of matrix products.
  """

  weight_bytes: int
  cache_bytes: int
  operations: int

  def seconds(self, chip: chips.Chip) -> float:
    """Returns the larger of the times to read and to compute."""
    num_bytes = self.weight_bytes + self.cache_bytes
    return max(num_bytes / chip.bandwidth, self.operations / chip.peak)


def count(
    model: models.Model, *, rows: int, block: int, slots: int,
    inputs_length: int,
) -> Call:  # fmt: skip
  """Counts the bytes and operations of one call.

  Args:
    model: an abstract model with shardings.
    rows: rows per device.
    block: positions per row.
    slots: slots per row of the cache; all are read.
    inputs_length: tokens per input.
  """
  num_weights = sum(map(_local_size, read_floor.step_weights(model)))
  itemsize = jnp.dtype(model.config.dtype).itemsize
  # Elements per position: a key and a value in every layer.
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


def _local_heads(model: models.Model) -> int:
  """Returns the number of heads per device."""
  out = model.params['decoder']['layers_0']['self_attention']['out']['kernel']
  joined, _ = out.sharding.shard_shape(out.shape)
  return joined // model.config.head_dim


def speedup(
    row: published.Row, plain_s: float, draft_s: float, verify_s: float
) -> float:
  """Returns plain over speculative time per token at a row's alpha and gamma.

  This is Theorem 3.8 of Leviathan et al. (2023) with a separate cost of
  verification. The three times are in one unit.

  Args:
    row: a row of Table 2.
    plain_s: time of a target call on one position.
    draft_s: time of a draft call on one position.
    verify_s: time of a target call on gamma + 1 positions.
  """
  tokens = theory.expected_tokens(row.alpha, row.gamma)
  return float(tokens * plain_s / (row.gamma * draft_s + verify_s))
