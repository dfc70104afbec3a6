# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Meshes of T5X's jobs on TPU slices for which T5X has no default mesh.

T5X knows TPU v2 to v4 only, and its default of 8 partitions is 4 chips wide,
which most slices of v4 are not.
"""

from collections.abc import Iterator, Sequence
import itertools
import math

from absl import logging
import jax
from t5x import partitioning

Submesh = tuple[int, int, int, int]


def fit_to_slice(
    partitioner: partitioning.PjitPartitioner,
) -> partitioning.PjitPartitioner:
  """Return a partitioner whose mesh the present devices can form.

  Where T5X has a mesh, it stays. Otherwise `model_parallel_submesh` is set to
  the most compact one of `num_partitions` chips. The mesh is logged.

  Args:
    partitioner: T5X's, with `num_partitions` or `model_parallel_submesh`.
  Raises:
    ValueError: if the slice cannot be split that way. Names the numbers of
      partitions that it can be split into.
  """
  try:
    mesh = partitioner.mesh
  except (AssertionError, ValueError) as error:
    devices = jax.devices()
    if devices[0].platform != 'tpu':
      raise
    submesh = _submesh(partitioner, devices, error)
    # T5X has no public way to learn `num_partitions` of a partitioner, and so
    # none to make another that differs in the submesh alone.
    partitioner._model_parallel_submesh = submesh
    mesh = partitioner.mesh
    logging.info('T5X has no mesh of its own for this slice.')
  submesh = partitioner._model_parallel_submesh
  logging.info(
      'Mesh of %d x %s: %s%s.',
      mesh.size,
      mesh.devices.flat[0].device_kind,
      ', '.join(f'{name} {size}' for name, size in mesh.shape.items()),
      f', model_parallel_submesh {submesh}' if submesh else '',
  )
  return partitioner


def _submesh(
    partitioner: partitioning.PjitPartitioner,
    devices: Sequence[jax.Device],
    error: Exception,
) -> Submesh:
  """Return the submesh for a partitioner that has no mesh."""
  bounds = _bounds(devices)
  host = _bounds([x for x in devices if x.process_index == 0])
  count = partitioner._num_partitions
  given = partitioner._model_parallel_submesh
  if given is None and (found := list(submeshes(count, bounds, host))):
    return found[0]
  can = [
      count
      for count in range(1, math.prod(bounds) + 1)
      if any(submeshes(count, bounds, host))
  ]
  what = f'num_partitions = {count}'
  if given is not None:
    what = f'model_parallel_submesh = {given}'
  raise ValueError(
      f'{what} does not fit this slice of {"x".join(map(str, bounds[:3]))}'
      f' chips ({devices[0].device_kind}). Set'
      ' partitioning.PjitPartitioner.num_partitions to one of'
      f' {", ".join(map(str, can))}, and leave model_parallel_submesh out.'
  ) from error


def submeshes(count: int, bounds: Submesh, host: Submesh) -> Iterator[Submesh]:
  """Yield the submeshes of a number of devices that a slice can be tiled by.

  Args:
    count: Devices of a submesh.
    bounds: The slice's numbers of chips along x, y and z, and cores per chip.
    host: Those of each host. T5X tiles by hosts: along each axis, one of host
      and submesh must divide the other.
  Yields:
    The submeshes, those within the fewest hosts first, and of these the most
    compact ones.
  """
  sides = [[n for n in range(1, b + 1) if b % n == 0] for b in bounds]
  found = []
  for submesh in itertools.product(*sides):
    pairs = list(zip(submesh, host, strict=True))
    if math.prod(submesh) == count and all(
        n % h == 0 or h % n == 0 for n, h in pairs
    ):
      hosts = math.prod(max(1, n // h) for n, h in pairs)
      found.append((hosts, max(submesh), submesh))
  for _, _, submesh in sorted(found):
    yield submesh


def _bounds(devices: Sequence[jax.Device]) -> Submesh:
  """Return how many chips lie along x, y and z, and the cores of a chip."""
  places = [(*x.coords, x.core_on_chip) for x in devices]
  return tuple(max(side) + 1 for side in zip(*places, strict=True))
