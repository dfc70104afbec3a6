# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimates the device memory that decoding needs, from shapes alone.

The estimate includes arrays that are held for the whole decoding of a batch:
parameters, caches, keys and values of the inputs, and the logits of a block; or
the peak while the models are loaded, if that is higher. It does not include
activations of the encoder and temporary buffers.
"""

import collections
from collections.abc import Sequence
import dataclasses
import gc
import math
import os
import pathlib
import re

import jax
import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import state as state_lib

_MEMINFO = pathlib.Path('/proc/meminfo')  # exists on Linux


@dataclasses.dataclass(frozen=True)
class Workload:
  """A batch to decode, and the devices.

  Attributes:
    batch_size: examples per batch, partitioned over the devices along 'data'.
    num_decodes: samples per example.
    inputs_length: maximum tokens per input.
    targets_length: maximum tokens per output.
    gamma: draft tokens per block.
    mesh_shape: numbers of devices along 'data' and 'model'.
    draft_model_parallel: whether the draft is partitioned along 'model', as the
      target is; otherwise it is replicated.
  """

  batch_size: int
  num_decodes: int
  inputs_length: int
  targets_length: int
  gamma: int
  mesh_shape: Sequence[int] = (1, 1)
  draft_model_parallel: bool = False

  def __post_init__(self):
    try:
      data, model = self.mesh_shape
    except (TypeError, ValueError):
      raise ValueError(
          'mesh_shape must be two numbers of devices, along the data and model'
          f' axes, got {self.mesh_shape!r}.'
      ) from None
    counts = dataclasses.asdict(self) | {'data': data, 'model': model}
    del counts['draft_model_parallel'], counts['mesh_shape']
    ranges.check_settings(ranges.COUNT, **counts)
    if self.batch_size % data:
      raise ValueError(
          f'batch_size {self.batch_size} cannot be split evenly over {data}'
          f' devices along data. Choose a multiple of {data}.'
      )

  @property
  def examples(self) -> int:
    """Examples per device."""
    return self.batch_size // self.mesh_shape[0]

  @property
  def rows(self) -> int:
    """Rows per device."""
    return self.examples * self.num_decodes


@dataclasses.dataclass(frozen=True)
class DeviceBytes:
  """Bytes that one model needs per device.

  Attributes:
    params: prepared parameters, in the dtype of decoding.
    cache: keys and values of self-attention.
    cross: keys and values of cross-attention.
    logits: float32 logits of a block; for a draft, the distributions of its
      draft tokens.
    loading: what is held beside the parameters while the model is loaded: the
      parts of the largest merged kernel, and a head before it is shortened.
  """

  params: int
  cache: int
  cross: int
  logits: int
  loading: int = 0

  @property
  def total(self) -> int:
    """Bytes that are held for the whole decoding of a batch."""
    return self.params + self.cache + self.cross + self.logits


def peak_bytes(models: Sequence[DeviceBytes]) -> int:
  """Returns the most bytes per device while models are loaded and decode."""
  params = sum(each.params for each in models)
  loading = max(each.loading for each in models)
  return max(sum(each.total for each in models), params + loading)


def target_bytes(config: t5.T5Config, workload: Workload) -> DeviceBytes:
  """Returns the bytes that the target needs per device.

  Args:
    config: the target's sizes, and the dtype of decoding.
    workload: the batch and the mesh; matrices and heads are partitioned along
      'model'.
  """
  row_logits = (workload.gamma + 1) * config.vocab_size
  return _device_bytes(config, workload, sharding.MODEL_PARALLEL, row_logits)


def draft_bytes(
    config: t5.T5Config | None, workload: Workload, vocab_size: int
) -> DeviceBytes:
  """Returns the bytes that the draft needs per device.

  Args:
    config: the draft's sizes, and the dtype of decoding; None for a draft
      without a network of its own, such as layers of the target: it has no
      parameters and no cache.
    workload: the batch and the mesh.
    vocab_size: width of the target's logits, to which the draft's are padded or
      cut.
  """
  row_logits = workload.gamma * vocab_size
  if config is None:
    return DeviceBytes(0, 0, 0, _logits_bytes(workload, row_logits))
  rules = sharding.REPLICATED
  if workload.draft_model_parallel:
    rules = sharding.MODEL_PARALLEL
  return _device_bytes(config, workload, rules, row_logits)


def _device_bytes(
    config: t5.T5Config,
    workload: Workload,
    rules: sharding.Rules,
    row_logits: int,
) -> DeviceBytes:
  mesh = jax.sharding.AbstractMesh(
      tuple(workload.mesh_shape), (sharding.DATA_AXIS, sharding.MODEL_AXIS)
  )
  slots = state_lib.cache_slots(workload.targets_length, workload.gamma)
  position = _position_bytes(config, mesh, rules)
  return DeviceBytes(
      params=sum(_leaf_bytes(config, mesh, rules).values()),
      cache=workload.rows * slots * position,
      cross=workload.examples * workload.inputs_length * position,
      logits=_logits_bytes(workload, row_logits),
      loading=_loading_bytes(config, mesh, rules),
  )


def _logits_bytes(workload: Workload, row_logits: int) -> int:
  return workload.rows * row_logits * jnp.dtype(jnp.float32).itemsize


def _leaf_bytes(
    config: t5.T5Config,
    mesh: jax.sharding.AbstractMesh,
    rules: sharding.Rules,
) -> dict[str, int]:
  """Returns the bytes of each prepared parameter, by name."""
  # A tied head is also stored transposed.
  config = dataclasses.replace(
      config, separate_head=config.logits_via_embedding
  )
  itemsize = jnp.dtype(config.dtype).itemsize
  sizes = jax.tree.map(
      lambda param, where: itemsize * math.prod(where.shard_shape(param.shape)),
      models_lib.abstract_params(config),
      models_lib.param_shardings(config, mesh, rules),
  )
  return checkpoints.flatten(sizes)


def _loading_bytes(
    config: t5.T5Config,
    mesh: jax.sharding.AbstractMesh,
    rules: sharding.Rules,
) -> int:
  whole = dataclasses.replace(config, head_size=None)
  sizes = _leaf_bytes(whole, mesh, rules)
  merged = collections.Counter()
  if mesh.size == 1:
    for name, size in sizes.items():
      if kernel := t5_preparation.merged_kernel(config, name):
        merged[kernel[0]] += size
  largest = max(merged.values(), default=0)
  return largest + (sizes[t5_preparation.HEAD] if config.head_size else 0)


def _position_bytes(
    config: t5.T5Config,
    mesh: jax.sharding.AbstractMesh,
    rules: sharding.Rules,
) -> int:
  """Returns the bytes of a position's keys and values in all decoder layers."""
  shape = (config.num_heads, config.head_dim)
  where = sharding.named_sharding(mesh, rules, ('heads', 'kv'), shape)
  size = 2 * config.num_decoder_layers * math.prod(where.shard_shape(shape))
  return size * jnp.dtype(config.dtype).itemsize


def available_bytes() -> int:
  """Returns the free bytes of the first device; for a CPU, of the host.

  Raises:
    ValueError: if the device does not report its free memory.
  """
  gc.collect()  # compiled programs hold models in reference cycles
  device = jax.local_devices()[0]
  stats = device.memory_stats()
  if stats is not None and 'bytes_limit' in stats:
    return stats['bytes_limit'] - stats['bytes_in_use']
  if device.platform != 'cpu':
    raise ValueError(
        f'The {device.platform} does not report its free memory, as with'
        ' XLA_PYTHON_CLIENT_ALLOCATOR=platform. Unset that variable.'
    )
  if _MEMINFO.exists():
    text = _MEMINFO.read_text(encoding='utf-8')
    if found := re.search(r'^MemAvailable:\s+(\d+) kB', text, re.M):
      return int(found[1]) * 1024
  return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
