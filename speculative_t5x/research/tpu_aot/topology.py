# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Descriptions of TPU chips and topologies, without the hardware.

Memory size, memory bandwidth and peak of a chip are from Google Cloud's pages
on each generation. The clock of v4 is from Jouppi et al. (2023), "TPU v4: An
Optically Reconfigurable Supercomputer for Machine Learning", Table 4. The
clocks of v5e and v5p are computed from their peaks and the sizes of their
matrix units. The clock of v6e cannot be computed in this way and is left out.
"""

from collections.abc import Sequence
import dataclasses
import importlib.metadata
import math
import os
import re

import jax
from jax.experimental import topologies

from speculative_t5x.loading import quiet
from speculative_t5x.networks import sharding

_GIB = 2**30
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
class Chip:
  """Published figures per chip of one TPU generation.

  Attributes:
    name: the generation, as in topology names.
    memory_bytes: size of the HBM.
    bandwidth: HBM bandwidth, bytes per second.
    peak: bfloat16 operations per second.
    clock_hz: cycles per second; None if unknown.
  """

  name: str
  memory_bytes: int
  bandwidth: float
  peak: float
  clock_hz: float | None

  def seconds(self, cycles: float) -> float | None:
    """Converts cycles to seconds; returns None if the clock is unknown."""
    return None if self.clock_hz is None else cycles / self.clock_hz


CHIPS = {
    chip.name: chip
    for chip in (
        Chip('v4', 32 * _GIB, 1.228e12, 275e12, 1.05e9),
        Chip('v5e', 16 * _GIB, 0.819e12, 197e12, 1.5e9),
        Chip('v5p', 95 * _GIB, 2.765e12, 459e12, 1.75e9),
        Chip('v6e', 32 * _GIB, 1.64e12, 918e12, None),
    )
}


@dataclasses.dataclass(frozen=True)
class Topology:
  """Chips of one generation, on which models are placed.

  Attributes:
    name: e.g. 'v4:2x2x1'.
    chip: published figures per chip.
    devices: one per chip; programs can be compiled for them but not run.
    mesh: the mesh of all devices, data x model; None for one device.
  """

  name: str
  chip: Chip
  devices: Sequence[jax.Device]
  mesh: jax.sharding.Mesh | None = None

  def replicated(self) -> jax.sharding.Sharding:
    """Returns the sharding that replicates an array on every device."""
    if self.mesh is None:
      return jax.sharding.SingleDeviceSharding(self.devices[0])
    return sharding.replicated(self.mesh)

  def with_mesh(self, shape: Sequence[int] | None) -> 'Topology':
    """Returns the topology with a mesh of all its devices.

    Args:
      shape: numbers of devices along the data and model axes; None for all
        devices along the model axis.
    Raises:
      sharding.MeshError: if `shape` is not two numbers whose product is the
        number of devices.
    """
    count = len(self.devices)
    shape = (1, count) if shape is None else shape
    is_pair = isinstance(shape, Sequence) and len(shape) == 2
    if not is_pair or math.prod(shape) != count:
      raise sharding.MeshError(
          'mesh_shape must be two numbers of devices, along the data and model'
          f' axes, got {shape!r}: their product must be {count}, as'
          f' {self.name} has. Choose another mesh or another topology.'
      )
    mesh = sharding.make_mesh(*shape, self.devices)
    return dataclasses.replace(self, mesh=None if count == 1 else mesh)


def describe(name: str) -> Topology:
  """Returns a topology for which programs can be compiled, without a mesh.

  Args:
    name: the generation and the chips along each axis, e.g. 'v4:2x2x1' or
      'v5e:2x2'.
  Raises:
    TopologyError: if the topology is unknown, or if libtpu is missing.
  """
  match = _NAME.fullmatch(name) if isinstance(name, str) else None
  chip = CHIPS.get(match[1]) if match else None
  if chip is None:
    raise TopologyError(
        f'There is no topology {name!r}. Write a generation'
        f' ({", ".join(CHIPS)}) and the chips along each axis, as in v4:2x2x1'
        ' or v5e:2x2 (a v4-8 machine is v4:2x2x1, a v5litepod-4 is v5e:2x2).'
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
  """Returns the version of libtpu.

  Raises:
    TopologyError: if it is not installed.
  """
  try:
    return importlib.metadata.version('libtpu')
  except importlib.metadata.PackageNotFoundError as error:
    raise TopologyError(
        "libtpu, the compiler for TPUs, is not installed. Install the package's"
        " extra: in a checkout, pip install '.[tpu-aot]'."
    ) from error
