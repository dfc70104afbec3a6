# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of TPU topologies, without the hardware."""

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

_NAME = re.compile(r'(\w+):(\d+(?:x\d+){1,2})')
# Without these variables libtpu queries the TPU machine's metadata server, and
# only one process per machine can load it.
_ENVIRONMENT = {
    'TPU_WORKER_HOSTNAMES': 'localhost',
    'TPU_SKIP_MDS_QUERY': '1',
    'ALLOW_MULTIPLE_LIBTPU_LOAD': '1',
}
_PAIRED_CORES = ('v4',)  # two cores per chip, by default two devices


class TopologyError(ValueError):
  """A topology cannot be described, or libtpu is missing."""


@dataclasses.dataclass(frozen=True)
class Topology:
  """Chips of one generation, on which models are placed."""

  name: str  # as 'v4:2x2x1'
  chip: chips.Chip
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

  Args:
    name: The generation and the chips along each axis, e.g. 'v4:2x2x1' or
      'v5e:2x2'.
  Raises:
    TopologyError: if the topology is unknown, or if libtpu is missing.
  """
  match = _NAME.fullmatch(name) if isinstance(name, str) else None
  chip = chips.CHIPS.get(match[1]) if match else None
  if chip is None:
    raise TopologyError(
        f'There is no topology {name!r}. Write a generation'
        f' ({", ".join(chips.CHIPS)}) and the chips along each axis, as in'
        ' v4:2x2x1 or v5e:2x2 (a v4-8 machine is v4:2x2x1, a v5litepod-4 is'
        ' v5e:2x2).'
    )
  check_libtpu()
  for variable, value in _ENVIRONMENT.items():
    os.environ.setdefault(variable, value)
  options = {}
  if chip.name in _PAIRED_CORES:
    options['chip_config_name'] = 'megacore'
  if math.prod(map(int, match[2].split('x'))) == 1:
    options['chips_per_host_bounds'] = (1, 1, 1)
  try:
    with quiet.quiet_stderr():
      found = topologies.get_topology_desc(name, platform='tpu', **options)
  except RuntimeError as error:
    raise TopologyError(
        f'libtpu does not know the topology {name}: {error}. Choose the'
        ' topology of a host or a slice, as in v4:1x1x1, v4:2x2x1 or v5e:2x4.'
    ) from error
  return Topology(name, chip, tuple(found.devices))


def check_libtpu() -> str:
  """Return the version of libtpu, or raise `TopologyError`."""
  try:
    return importlib.metadata.version('libtpu')
  except importlib.metadata.PackageNotFoundError as error:
    raise TopologyError(
        "libtpu, the compiler for TPUs, is not installed:"
        f' {extras.install("tpu-aot")}.'
    ) from error
