# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Estimates the device memory that decoding needs, of any network.

The estimate has what is held for the whole decoding of a batch: parameters,
caches, what is read of the inputs, and the logits of a block; or the peak while
the models are loaded, if that is higher. It does not include activations of the
encoder and temporary buffers. Shapes are read from programs that are traced and
neither compiled nor run.
"""

from collections.abc import Sequence
import dataclasses
import functools
import gc
import math
import os
import pathlib
import re
from typing import Any

from flax.linen import partitioning
import jax
from jax.extend import core
import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import chips
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib

_MIB, _GIB = 2**20, 2**30
_MEMINFO = pathlib.Path('/proc/meminfo')  # exists on Linux


@dataclasses.dataclass(frozen=True)
class Workload:
  """A batch to decode, of texts of at most these lengths, and the devices."""

  batch_size: int  # examples, partitioned over the devices along 'data'
  num_decodes: int  # samples per example
  inputs_length: int
  targets_length: int
  gamma: int  # draft tokens per block
  mesh_shape: tuple[int, int] = (1, 1)  # devices along 'data' and 'model'
  # Whether the draft is partitioned along 'model', as the target is.
  draft_model_parallel: bool = False

  @property
  def mesh(self) -> jax.sharding.AbstractMesh:
    return sharding.make_abstract_mesh(*self.mesh_shape)

  @property
  def examples(self) -> int:  # per device
    return self.batch_size // self.mesh_shape[0]

  @property
  def rows(self) -> int:  # per device
    return self.examples * self.num_decodes


@dataclasses.dataclass(frozen=True)
class DeviceBytes:
  """Bytes that one model needs per device while a batch is decoded."""

  params: int  # prepared, in the dtype of decoding
  cache: int  # what changes in decoding: keys and values of self-attention
  cross: int  # what is only read: keys and values of cross-attention
  logits: int  # of a block, float32; of a draft, its distributions
  # What is held beside the parameters while the model is loaded: what one of
  # them is made from.
  loading: int = 0

  @property
  def total(self) -> int:
    return self.params + self.cache + self.cross + self.logits


def text(num_bytes: float) -> str:
  """Format bytes in MiB, or in GiB from 1 GiB on."""
  if num_bytes < _GIB:
    return f'{num_bytes / _MIB:.2f} MiB'
  return f'{num_bytes / _GIB:,.2f} GiB'


def peak_bytes(models: Sequence[DeviceBytes]) -> int:
  """Return the most bytes per device while models are loaded and decode."""
  return max(sum(each.total for each in models), loading_bytes(models))


def loading_bytes(models: Sequence[DeviceBytes]) -> int:
  """Return the most bytes per device that are held while models are read."""
  params = sum(each.params for each in models)
  return params + max(each.loading for each in models)


def target_bytes(
    network: network_lib.Network, workload: Workload, scores: bool = False
) -> DeviceBytes:
  """Return the bytes that the target, as it is stored, needs per device.

  With `scores`, it also scores whole texts at once, as
  `research.measurement.acceptance` does.
  """
  tokens = workload.gamma + 1
  if scores:
    tokens = max(tokens, workload.targets_length)
  row_logits = tokens * network.vocab_size
  rules = sharding.MODEL_PARALLEL
  platform = jax.default_backend()
  return _device_bytes(network, workload, rules, row_logits, platform)


def draft_bytes(
    network: network_lib.Network | None, workload: Workload, vocab_size: int
) -> DeviceBytes:
  """Return the bytes that the draft needs per device.

  The network is as a checkpoint holds it, but for a head that is shortened;
  None for a draft without parameters and cache of its own. Its logits are
  padded or cut to the target's, `vocab_size`.
  """
  row_logits = workload.gamma * vocab_size
  if network is None:
    return DeviceBytes(0, 0, 0, 4 * workload.rows * row_logits)
  rules = sharding.REPLICATED
  if workload.draft_model_parallel:
    rules = sharding.MODEL_PARALLEL
  platform = jax.default_backend()
  return _device_bytes(network, workload, rules, row_logits, platform)


def copy_bytes(num_bytes: int, dtype: Any, platform: str) -> int:
  """Return the bytes of the copies that running programs make of weights.

  XLA:CPU multiplies in float32. It converts narrower weights before the loop,
  and keeps the copies until the loop has ended.
  """
  width = jnp.dtype(dtype).itemsize
  is_converted = platform == 'cpu' and width < 4
  return num_bytes * 4 // width if is_converted else 0


def weight_bytes(
    network: network_lib.Network, mesh_shape: tuple[int, int]
) -> int:
  """Return the bytes per device of a network's parameters in float32."""
  params = models_lib.abstract_params(network)
  mesh = sharding.make_abstract_mesh(*mesh_shape)
  sizes = _leaf_bytes(network, params, mesh, sharding.MODEL_PARALLEL)
  return sum(sizes.values())


@functools.cache  # tracing takes a second
def _device_bytes(
    network: network_lib.Network,
    workload: Workload,
    rules: sharding.Rules,
    row_logits: int,
    platform: str,
) -> DeviceBytes:
  mesh, is_merged = workload.mesh, workload.mesh.size == 1
  whole = network
  if getattr(network, 'head_size', None):  # shortened after it is prepared
    whole = dataclasses.replace(network, head_size=None)
  made, given_up = _preparation(whole, mesh, rules, is_merged)
  prepared = whole.prepared(platform, is_merged)
  params = held = _leaf_bytes(prepared, made, mesh, rules)
  if whole is not network:
    prepared = network.prepared(platform, is_merged)
    made = _params(prepared)
    params = _leaf_bytes(prepared, made, mesh, rules)
  total = sum(params.values())
  replaced = sum(x for name, x in held.items() if params[name] != x)
  preparing = sum(held.values()) + given_up
  cross, cache = _started_bytes(prepared, made, workload, rules)
  return DeviceBytes(
      params=total,
      cache=cache,
      cross=cross,
      logits=4 * workload.rows * row_logits,  # float32
      loading=max(preparing, total + replaced) - total,
  )


def _params(network: network_lib.Network) -> Any:
  """Return shapes of the parameters, in the dtype of decoding."""
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(
          x.shape,
          network.dtype if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype,
      ),
      models_lib.abstract_params(network),
  )


def _leaf_bytes(
    network: network_lib.Network,
    params: contracts.Params,
    mesh: sharding.Mesh,
    rules: sharding.Rules,
) -> dict[str, int]:
  """Return the bytes of each parameter per device, by name."""
  if mesh.size == 1:  # names of axes take another trace of the network
    shapes = jax.tree.map(lambda x: x.shape, params)
  else:
    where = models_lib.param_shardings(network, mesh, rules)
    shapes = jax.tree.map(lambda x, y: y.shard_shape(x.shape), params, where)
  count = lambda x, shape: math.prod(shape) * x.dtype.itemsize
  return checkpoints.flatten(jax.tree.map(count, params, shapes))


def _preparation(
    network: network_lib.Network,
    mesh: sharding.Mesh,
    rules: sharding.Rules,
    is_merged: bool,
) -> tuple[contracts.Params, int]:
  """Return shapes of the prepared parameters, and the bytes that one costs.

  They are the most bytes that are given up for a prepared parameter.
  """
  sizes = _leaf_bytes(network, _params(network), mesh, rules)
  params = checkpoints.flatten(_params(network))
  names = sorted(params)  # the order of the program's inputs
  closed, made = jax.make_jaxpr(
      lambda x: dict(network.prepare(iter(x.items()), is_merged)),
      return_shape=True,
  )(params)
  program = closed.jaxpr
  size_of = {x: sizes[name] for x, name in zip(program.invars, names)}
  made_of = {x: {x} for x in program.invars}
  for step in program.eqns:
    read = [made_of[x] for x in step.invars if isinstance(x, core.Var)]
    made_of |= dict.fromkeys(step.outvars, set().union(*read))
  kept = set(program.outvars)
  given_up = max(
      sum(size_of[x] for x in made_of[out] - kept) for out in program.outvars
  )
  return checkpoints.nest(made), given_up


def _started_bytes(
    network: network_lib.Network,
    params: contracts.Params,
    workload: Workload,
    rules: sharding.Rules,
) -> tuple[int, int]:
  """Return the bytes per device of the memory and of the cache.

  Examples are those of one device; what the network constrains to lie along
  'model' is divided.
  """
  slots = state_lib.cache_slots(workload.targets_length, workload.gamma)
  shape = workload.examples, workload.inputs_length
  features = None
  if width := getattr(network, 'width_of_inputs', None):  # need no encoder
    features = jax.ShapeDtypeStruct((*shape, width), network.dtype)

  def start(params, inputs, features):
    started = network.start(params, inputs, workload.rows, slots, features)
    return started.memory, started.cache

  mesh = sharding.make_abstract_mesh(1, workload.mesh_shape[1])
  with (
      jax.sharding.use_abstract_mesh(mesh),
      partitioning.axis_rules(tuple(rules)),
  ):
    program, (memory, _) = jax.make_jaxpr(start, return_shape=True)(
        params, jax.ShapeDtypeStruct(shape, jnp.int32), features
    )
  constrained = {
      step.outvars[0]: step.params['sharding']
      for step in program.eqns
      if step.primitive.name == 'sharding_constraint'
  }
  sizes = []
  for x in program.jaxpr.outvars:
    where = constrained.get(x, sharding.replicated(mesh))
    shard = where.shard_shape(x.aval.shape)
    sizes.append(math.prod(shard) * x.aval.dtype.itemsize)
  num_memory = len(jax.tree.leaves(memory))
  return sum(sizes[:num_memory]), sum(sizes[num_memory:])


def available_bytes() -> float:
  """Return the free bytes of the first device; for a CPU, of the host.

  Infinity where the device does not report them, as with
  XLA_PYTHON_CLIENT_ALLOCATOR=platform.
  """
  if jax.live_arrays():
    gc.collect()  # compiled programs hold models in reference cycles
  device = jax.local_devices()[0]
  stats = device.memory_stats()
  if stats is not None and 'bytes_limit' in stats:
    return stats['bytes_limit'] - stats['bytes_in_use']
  if (chip := chips.of_kind(device.device_kind)) is not None:
    return chip.memory_bytes  # all of it: one process holds a TPU
  if device.platform != 'cpu':
    return math.inf
  if _MEMINFO.exists():
    lines = _MEMINFO.read_text(encoding='utf-8')
    if found := re.search(r'^MemAvailable:\s+(\d+) kB', lines, re.M):
      return int(found[1]) * 1024
  return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
