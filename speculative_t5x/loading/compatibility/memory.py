# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adds the bytes that decoding holds on each device, of any network.

They are parameters, caches, what is read of the inputs, and the logits of a
block. Activations, temporary buffers and the parts of a parameter that is being
loaded are not among them.
"""

import dataclasses
import functools
import gc
import math
import os
import pathlib
import re
from typing import Any

import jax

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import chips
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import state as state_lib

_MEMINFO = pathlib.Path('/proc/meminfo')  # exists on Linux


@dataclasses.dataclass(frozen=True)
class Lengths:
  """The most that a request may have."""

  inputs: int
  targets: int
  gamma: int  # draft tokens per block
  num_decodes: int = 1  # samples per example


@dataclasses.dataclass(frozen=True)
class Workload:
  """A batch to decode, and the devices."""

  lengths: Lengths
  batch_size: int  # examples, partitioned over the devices along 'data'
  mesh_shape: tuple[int, int] = (1, 1)  # devices along 'data' and 'model'

  @property
  def examples(self) -> int:  # per device
    return self.batch_size // self.mesh_shape[0]

  @property
  def rows(self) -> int:  # per device
    return self.examples * self.lengths.num_decodes

  def logits_bytes(self, vocab_size: int) -> int:
    """Return the bytes of a block's logits and a draft's distributions."""
    tokens = 2 * self.lengths.gamma + 1
    return 4 * self.rows * tokens * vocab_size  # float32


def text(num_bytes: float) -> str:
  """Format bytes in GiB."""
  return f'{num_bytes / 2**30:,.2f} GiB'


def of_model(
    network: network_lib.Network,
    workload: Workload,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> int:
  """Return the bytes per device of a checkpoint's model; compute nothing.

  They are its parameters, and keys and values of inputs and outputs if it has
  them in a cache. A head that is to be shortened is counted whole, as it is
  read.
  """
  if getattr(network, 'head_size', None):
    network = dataclasses.replace(network, head_size=None)
  mesh = sharding.make_abstract_mesh(*workload.mesh_shape)
  is_merged = mesh.size == 1
  prepared = network.prepared(jax.default_backend(), is_merged)
  params = jax.eval_shape(
      lambda x: dict(network.prepare(iter(x.items()), is_merged)),
      checkpoints.flatten(_in_dtype(network)),
  )
  params = checkpoints.nest(params)
  num_bytes = _params_bytes(prepared, params, mesh, rules)
  if not network_lib.offers(network, 'init_cache'):
    return num_bytes  # the cache of such a network has a form of its own
  lengths = workload.lengths
  slots = state_lib.cache_slots(lengths.targets, lengths.gamma)
  # Cross-attention holds keys and values of the same sizes, per input.
  cache = jax.eval_shape(
      functools.partial(
          network.init_cache, workload.rows, slots + lengths.inputs
      )
  )
  # They are partitioned by heads, as kernels are.
  units = network.axis_units['joined_kv']
  heads = sharding.named_sharding(mesh, rules, ['joined_kv'], [units])
  parts = units // math.prod(heads.shard_shape((units,)))
  return num_bytes + num_bytes_of(cache) // parts


def _params_bytes(
    network: network_lib.Network,
    params: Any,
    mesh: sharding.Mesh,
    rules: sharding.Rules,
) -> int:
  if mesh.size == 1:  # names of axes take another trace of the network
    return num_bytes_of(params)
  where = models_lib.param_shardings(network, mesh, rules)
  shard = lambda x, y: jax.ShapeDtypeStruct(y.shard_shape(x.shape), x.dtype)
  return num_bytes_of(jax.tree.map(shard, params, where))


def _in_dtype(network: network_lib.Network) -> Any:
  """Return shapes of the parameters, in the dtype of decoding."""
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, network.dtype),
      models_lib.abstract_params(network),
  )


def num_bytes_of(tree: Any) -> int:
  """Return the bytes of all arrays of a tree."""
  return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


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
    if match := re.search(r'^MemAvailable:\s+(\d+) kB', lines, re.M):
      return int(match[1]) * 1024
  return os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
