# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of TPU topologies and of a GPU, without the hardware."""

from collections.abc import Sequence
import dataclasses
import importlib.metadata
import math
import os
import re

import jax
from jax.experimental import topologies

from speculative_t5x import extras
from speculative_t5x.loading import quiet
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding

_TPU_NAME = re.compile(r'(\w+):(\d+(?:x\d+){1,2})')
# Without these variables libtpu queries the TPU machine's metadata server, and
# only one process per machine can load it.
TPU_ENVIRONMENT = {
    'TPU_WORKER_HOSTNAMES': 'localhost',
    'TPU_SKIP_MDS_QUERY': '1',
    'ALLOW_MULTIPLE_LIBTPU_LOAD': '1',
}
# The plugin must neither look for a driver nor time kernels on a device. Each
# is added to what the variable has.
_GPU_VARIABLES = {
    'JAX_SKIP_CUDA_CONSTRAINTS_CHECK': '1',
    'XLA_FLAGS': '--xla_gpu_autotune_level=0',
}
_PAIRED_CORES = ('v4',)  # two cores per chip, by default two devices

# Published figures of the H100 SXM. Cycles of its programs are not estimated.
H100 = chips.Chip('h100', 80 * 10**9, 3.35e12, 989e12, clock_hz=None)
# The same device as XLA's compiler asks for it.
_H100_TARGET = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472 threads_per_core_limit: 2048
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 l2_cache_size: 52428800
  memory_bandwidth: 3352320000000 device_memory_size: 84929347584
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  cuda_compute_capability { major: 9 }
}
platform_name: "CUDA" device_description_str: "NVIDIA H100 80GB HBM3"
dnn_version_info { major: 9 minor: 7 } runtime_version { major: 13 }
"""


class TopologyError(ValueError):
  """A topology cannot be described, or its compiler is missing."""


@dataclasses.dataclass(frozen=True)
class Topology:
  """Chips of one generation, on which models are placed."""

  name: str  # as 'v4:2x2x1'
  platform: str  # JAX's name: 'tpu' or 'gpu'
  chip: chips.Chip
  compiler: str  # its package and version
  devices: Sequence[jax.Device]  # programs are compiled for them and not run
  mesh: jax.sharding.Mesh | None = None  # of all, data x model; None for one

  def replicated(self) -> jax.sharding.Sharding:
    """Return the sharding that replicates an array on every device."""
    if self.mesh is None:
      return jax.sharding.SingleDeviceSharding(self.devices[0])
    return sharding.replicated(self.mesh)

  def with_mesh(self, shape: Sequence[int] | None) -> 'Topology':
    """Return the topology with a mesh of all its devices, data x model.

    By default all are along the model axis.
    """
    count = len(self.devices)
    shape = (1, count) if shape is None else shape
    is_pair = isinstance(shape, Sequence) and len(shape) == 2
    if not is_pair or math.prod(shape) != count:
      raise sharding.MeshError(
          'mesh_shape must be two numbers of devices, along the data and model'
          f' axes, got {shape!r}: their product must be {count}, as'
          f' {self.name} has. Choose another mesh or another topology.',
          mesh_shape=shape,
      )
    mesh = sharding.make_mesh(*shape, self.devices)
    return dataclasses.replace(self, mesh=None if count == 1 else mesh)


def describe(name: str) -> Topology:
  """Return a topology for which programs can be compiled, without a mesh.

  The name is a TPU's generation and its chips along each axis, e.g. 'v4:2x2x1'
  or 'v5e:2x2'; or 'h100', one GPU.

  Raises:
    TopologyError: if the topology is unknown, or if its compiler is missing.
  """
  if name == H100.name:
    return _describe_h100()
  match = _TPU_NAME.fullmatch(name) if isinstance(name, str) else None
  chip = chips.CHIPS.get(match[1]) if match else None
  if chip is None:
    raise TopologyError(
        f'There is no topology {name!r}. Write h100, or a generation of TPU'
        f' ({", ".join(chips.CHIPS)}) and the chips along each axis, as in'
        ' v4:2x2x1 or v5e:2x2 (a v4-8 machine is v4:2x2x1, a v5litepod-4 is'
        ' v5e:2x2).'
    )
  compiler = _compiler('libtpu', 'TPUs', 'tpu-aot')
  for variable, value in TPU_ENVIRONMENT.items():
    os.environ.setdefault(variable, value)
  options = {}
  if chip.name in _PAIRED_CORES:
    options['chip_config_name'] = 'megacore'
  if math.prod(map(int, match[2].split('x'))) == 1:
    options['chips_per_host_bounds'] = (1, 1, 1)
  with quiet.quiet_stderr():
    found = topologies.get_topology_desc(name, platform='tpu', **options)
  return Topology(name, 'tpu', chip, compiler, tuple(found.devices))


def _describe_h100() -> Topology:
  compiler = _compiler('jax-cuda13-pjrt', 'GPUs', 'gpu-aot')
  for name, value in _GPU_VARIABLES.items():
    os.environ[name] = f'{os.environ.get(name, "")} {value}'.strip()
  with quiet.quiet_stderr():
    found = topologies.get_topology_desc(
        platform='cuda', target_config=_H100_TARGET, topology='1x1x1'
    )
  return Topology(H100.name, 'gpu', H100, compiler, tuple(found.devices))


def _compiler(package: str, machines: str, extra: str) -> str:
  """Return a compiler's package and version, or raise `TopologyError`."""
  try:
    return f'{package} {importlib.metadata.version(package)}'
  except importlib.metadata.PackageNotFoundError as error:
    raise TopologyError(
        f'{package}, the compiler for {machines}, is not installed:'
        f' {extras.install(extra)}.'
    ) from error
