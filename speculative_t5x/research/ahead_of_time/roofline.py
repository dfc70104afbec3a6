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
from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.networks import chips
from speculative_t5x.networks import network as network_lib
from speculative_t5x.research.measurement import read_floor


class Call(NamedTuple):
  """The bytes and operations of one decoder call, per device."""

  weight_bytes: int  # of the decoder and the head
  cache_bytes: int  # keys and values of self-attention and cross-attention
  operations: int  # of matrix products

  def seconds(self, chip: chips.Chip) -> float:
    """Return the larger of the times to read and to compute."""
    num_bytes = self.weight_bytes + self.cache_bytes
    return max(num_bytes / chip.bandwidth, self.operations / chip.peak)


def count(
    model: models.Model, *, rows: int, block: int, slots: int,
    inputs_length: int,
) -> Call:  # fmt: skip
  """Count the bytes and operations of one call, in its traced program.

  The rows are those of a device. Positions that a TPU adds to the block do not
  count. All slots are read.
  """
  config = dataclasses.replace(model.config, min_block=1)
  network = network_lib.NetworkModel(config, model.special_ids)
  weights, kept = read_floor.step_inputs(
      network, model.params, rows, slots, inputs_length
  )
  arguments = read_floor.call_shapes(
      network, model.params, rows, slots, inputs_length
  )
  tokens = jax.ShapeDtypeStruct((rows, block), jnp.int32)
  positions = jax.ShapeDtypeStruct((rows,), jnp.int32)
  # No other platform's client analyses what it has not compiled.
  with jax.default_device(jax.local_devices(backend='cpu')[0]):
    lowered = jax.jit(network.decode).lower(*arguments, tokens, positions, None)
  flops = lowered.cost_analysis()['flops']
  local_bytes = sum(
      math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize
      for x in weights
  )
  # Caches and products are partitioned as the weights are.
  share = local_bytes / sum(x.size * x.dtype.itemsize for x in weights)
  return Call(local_bytes, round(share * kept), round(share * flops))
