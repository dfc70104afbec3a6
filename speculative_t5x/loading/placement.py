# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mesh and batch size that suit the machine, or a refusal, without weights.

What is not given is chosen: all local devices split the examples, unless the
weights need several; then as few as hold them partition the target. The sizes
are `compatibility.memory`'s, which count neither activations nor temporary
buffers: a choice leaves room for these where there is another one.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

_ROOM = 0.9  # share of the memory that choices fill
_ON_CPU, _ON_CHIP = 1, 8  # examples per device, not measured to be the best

Drafters = Sequence[drafting.Drafting]  # found, and not yet loaded
Shape = tuple[int, int]  # devices along the data and the model axis


class DoesNotFitError(ranges.ArgumentError):
  """The devices have too little memory."""


@dataclasses.dataclass(frozen=True)
class Machine:
  """The devices of this process, with the free bytes of each."""

  platform: str
  kind: str
  count: int
  free_bytes: float  # infinity where it is not known

  def __str__(self) -> str:
    free = memory.text(self.free_bytes)
    return f'{self.count} x {self.kind} with {free} free each'


@dataclasses.dataclass(frozen=True)
class Placed:
  """A target with its mesh and its drafters, with weights still to be read."""

  target: models.Found
  drafters: Drafters
  batch_size: int  # the largest of several
  line: str  # what was chosen, and what it takes


def this_machine() -> Machine:
  device, count = jax.local_devices()[0], jax.local_device_count()
  free = memory.available_bytes()
  if device.platform == 'cpu':  # simulated devices share the host's memory
    free /= count
  return Machine(device.platform, device.device_kind, count, free)


def place(
    target: models.Found,
    find: Callable[[models.Found], Drafters],
    lengths: memory.Lengths,
    sizes: Sequence[int] | None,
    mesh_shape: Sequence[int] | None,
) -> Placed:
  """Find drafters, and place them and the target on the devices.

  `find` returns the drafters, which take the mesh of the target given. Lengths
  are of the texts to decode. The data axis divides each of the batch sizes. The
  shape, devices along 'data' and 'model', may be given with the target's mesh.
  Sizes and shape are chosen where they are None.

  Raises:
    DoesNotFitError: with what decoding needs, and how much of it is missing.
  """
  if mesh_shape is not None and target.mesh is None:
    mesh = sharding.from_shape(mesh_shape)
    target = dataclasses.replace(target, mesh=mesh)
  found, machine = find(target), this_machine()
  per_device = _ON_CPU if machine.platform == 'cpu' else _ON_CHIP
  dtype = jnp.dtype(target.config.dtype).name
  for shape in _shapes(machine, sizes, mesh_shape):
    size = max(sizes) if sizes is not None else per_device * shape[0]
    workload = memory.Workload(lengths, size, shape)
    num_bytes = needed_bytes(target, found, workload)
    if num_bytes <= machine.free_bytes * _ROOM:
      break
  if num_bytes > machine.free_bytes:  # the last mesh need not leave room
    raise DoesNotFitError(
        f'{target.checkpoint} in {dtype} needs {memory.text(num_bytes)} of each'
        f' device with mesh_shape={shape} and batch_size={size}, and'
        f' {memory.text(num_bytes - machine.free_bytes)} are missing:'
        f' {machine}. Take more devices along the second axis of mesh_shape, a'
        ' smaller batch_size or a narrower dtype.'
    )
  if mesh_shape is None and math.prod(shape) > 1:
    target = dataclasses.replace(target, mesh=sharding.from_shape(shape))
    found = find(target)
  line = (
      f'{machine}: {dtype}, mesh_shape={shape}, batch_size={size}; weights,'
      f' caches and logits take {memory.text(num_bytes)} of each device'
  )
  return Placed(target, found, size, line)


def _shapes(
    machine: Machine,
    sizes: Sequence[int] | None,
    given: Sequence[int] | None,
) -> Sequence[Shape]:
  """Return the meshes to choose from, the preferred ones first."""
  if given is not None:
    return [tuple(given)]
  # The size of a mesh divides the number of devices: others may not be a
  # rectangle of TPU chips.
  return [
      (math.gcd(machine.count // parts, *(sizes or ())), parts)
      for parts in range(1, machine.count + 1)
      if machine.count % parts == 0
  ]


def needed_bytes(
    target: models.Found, found: Drafters, workload: memory.Workload
) -> int:
  """Return the bytes per device of a target with each drafter in turn."""
  drafters = [
      each.num_bytes
      + sum(
          memory.of_model(model.config, workload, model.rules)
          for model in (each.models if each.read else ())  # or it is not free
      )
      for each in found
  ]
  return (
      memory.of_model(target.config, workload)
      + sum(sorted(drafters)[-2:])  # one is read while another is still there
      + workload.logits_bytes(target.config.vocab_size)
  )


def training_mesh(
    num_examples: int, mesh_shape: Sequence[int] | None
) -> jax.sharding.Mesh | None:
  """Return the mesh of a training, on which its parameters are not counted.

  So many examples are computed together. The shape counts devices along 'data'
  and 'model'; None for as many along 'data' as divide the examples.
  """
  if mesh_shape is None:
    mesh_shape = math.gcd(jax.local_device_count(), num_examples), 1
  mesh = sharding.from_shape(mesh_shape)
  sharding.check_batch(mesh, num_examples)
  return mesh
