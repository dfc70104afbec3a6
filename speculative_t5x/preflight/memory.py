# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What decoding holds in a device's memory, counted before anything is read.

Counted is what lives as long as a batch does: parameters, caches, keys and
values of the inputs, and the logits of a block. Not counted: activations of
the encoder, what the compiler keeps for a moment, and the second copy of the
kernels that are being merged while a model is loaded.
"""

from collections.abc import Sequence
import dataclasses
import gc
import math
import os
import pathlib
import re

import jax
import jax.numpy as jnp

from speculative_t5x import loading
from speculative_t5x import sharding
from speculative_t5x import speculation
from speculative_t5x.networks import t5

_MEMINFO = pathlib.Path('/proc/meminfo')  # of Linux


@dataclasses.dataclass(frozen=True)
class Workload:
  """What is to be decoded at once, and on which devices.

  Attributes:
    batch_size: examples, as many on each device along 'data'.
    num_decodes: samples an example.
    inputs_length: most tokens of an input.
    targets_length: most tokens of an output.
    gamma: guesses a block.
    mesh_shape: devices along 'data' and along 'model'.
    draft_model_parallel: whether the draft is divided along 'model' as the
      target is; it lies whole on every device otherwise.
  """

  batch_size: int
  num_decodes: int
  inputs_length: int
  targets_length: int
  gamma: int
  mesh_shape: Sequence[int] = (1, 1)
  draft_model_parallel: bool = False

  def __post_init__(self):
    mesh_shape = self.mesh_shape
    if not isinstance(mesh_shape, Sequence) or len(mesh_shape) != 2:
      raise ValueError(
          'mesh_shape must be two numbers of devices, along data and along'
          f' model, got {mesh_shape!r}.'
      )
    values = dataclasses.asdict(self)
    del values['draft_model_parallel']
    values |= zip(('data', 'model'), values.pop('mesh_shape'), strict=True)
    for name, value in values.items():
      if not isinstance(value, int) or value < 1:
        raise ValueError(
            f'{name} must be a whole number and at least 1, got {value!r}.'
        )
    if self.batch_size % mesh_shape[0]:
      raise ValueError(
          f'batch_size {self.batch_size} cannot be dealt out to'
          f' {mesh_shape[0]} devices along data. Choose a multiple of it.'
      )

  @property
  def examples(self) -> int:
    """Examples on one device."""
    return self.batch_size // self.mesh_shape[0]

  @property
  def rows(self) -> int:
    """Rows on one device."""
    return self.examples * self.num_decodes


@dataclasses.dataclass(frozen=True)
class DeviceBytes:
  """Bytes that one model takes on one device.

  Attributes:
    params: parameters in the dtype to decode in, as they are prepared.
    cache: the decoder's own keys and values.
    cross: keys and values of the inputs.
    logits: of a block, float32; a draft's are its guesses' laws.
  """

  params: int
  cache: int
  cross: int
  logits: int

  @property
  def total(self) -> int:
    return self.params + self.cache + self.cross + self.logits


def target_bytes(config: t5.T5Config, workload: Workload) -> DeviceBytes:
  """What the target takes.

  Args:
    config: its sizes, and the dtype to decode in.
    workload: whose 'model' axis divides its matrices and its heads.
  """
  row_logits = (workload.gamma + 1) * config.vocab_size
  return _device_bytes(config, workload, sharding.MODEL_PARALLEL, row_logits)


def draft_bytes(
    config: t5.T5Config, workload: Workload, vocab_size: int
) -> DeviceBytes:
  """What the draft takes.

  Args:
    config: its sizes, and the dtype to decode in.
    workload: what is decoded.
    vocab_size: width of the target's logits, to which its own are fitted.
  """
  row_logits = workload.gamma * vocab_size
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
  slots = speculation.cache_slots(workload.targets_length, workload.gamma)
  position = _position_bytes(config, mesh, rules)
  return DeviceBytes(
      params=_params_bytes(config, mesh, rules),
      cache=workload.rows * slots * position,
      cross=workload.examples * workload.inputs_length * position,
      logits=workload.rows * row_logits * jnp.dtype(jnp.float32).itemsize,
  )


def _params_bytes(
    config: t5.T5Config,
    mesh: jax.sharding.AbstractMesh,
    rules: sharding.Rules,
) -> int:
  # A head that is the embedding is stored once more.
  config = dataclasses.replace(
      config, separate_head=config.logits_via_embedding
  )
  sizes = jax.tree.map(
      lambda param, place: math.prod(place.shard_shape(param.shape)),
      loading.abstract_params(config),
      loading.param_shardings(config, mesh, rules),
  )
  return sum(jax.tree.leaves(sizes)) * jnp.dtype(config.dtype).itemsize


def _position_bytes(
    config: t5.T5Config,
    mesh: jax.sharding.AbstractMesh,
    rules: sharding.Rules,
) -> int:
  """Keys and values of one position, in all layers of the decoder."""
  shape = (config.num_heads, config.head_dim)
  place = sharding.named_sharding(mesh, rules, ('heads', 'kv'), shape)
  size = 2 * config.num_decoder_layers * math.prod(place.shard_shape(shape))
  return size * jnp.dtype(config.dtype).itemsize


def available_bytes() -> int:
  """Bytes that are free on the first device, or on the host of a CPU.

  Raises:
    ValueError: if the device does not say.
  """
  gc.collect()  # compiled programs and the models they hold go in cycles
  device = jax.local_devices()[0]
  stats = device.memory_stats()
  if stats is not None and 'bytes_limit' in stats:
    return stats['bytes_limit'] - stats['bytes_in_use']
  if device.platform != 'cpu':
    raise ValueError(
        f'The {device.platform} does not say how much memory it has free, as'
        ' under XLA_PYTHON_CLIENT_ALLOCATOR=platform. Unset that.'
    )
  if _MEMINFO.exists():
    text = _MEMINFO.read_text()
    if found := re.search(r'^MemAvailable:\s+(\d+) kB', text, re.M):
      return int(found[1]) * 1024
  return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
