# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mesh and batch size that suit the machine, or a refusal, without weights.

What is not given is chosen so that it fits: all local devices split the
examples, unless the weights need several; then as few as hold them partition
the target. The sizes are `compatibility.memory`'s, which count neither
activations nor temporary buffers: choices leave room for these, and only what
cannot fit at all is refused.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import itertools
import math
import sys
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import chips
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

_ROOM = 0.9  # share of the memory that choices fill
_ON_CPU, _ON_CHIP = 1, 8  # examples per device, not measured to be the best

Drafters = Sequence[drafting.Drafting]  # found, and not yet loaded
Shape = tuple[int, int]  # devices along the data and the model axis
# Bytes per device, by batch size and mesh.
Needs = Callable[[int, Shape], int]


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
    if math.isinf(self.free_bytes):
      free = 'which do not report their free memory'
    else:
      each = ' each' if self.count > 1 else ''
      free = f'{memory.text(self.free_bytes)} free{each}'
    return f'{self.count} x {self.kind}, {free}'


@dataclasses.dataclass(frozen=True)
class Batches:
  """The batches to decode; see `memory.Workload`."""

  # Batch sizes, each of which the data axis divides; None to choose one.
  sizes: Sequence[int] | None
  num_decodes: int
  inputs_length: int
  targets_length: int
  gamma: int
  # Examples per device of other batches that are decoded, and whose whole texts
  # the target then scores.
  beside: int = 0

  def needs(
      self, target: network_lib.Network, found: Drafters, platform: str
  ) -> Needs:
    """Return the bytes per device of a target with each drafter in turn."""

    def needs(batch_size: int, mesh_shape: Shape) -> int:
      workload = memory.Workload(
          max(batch_size, self.beside * mesh_shape[0]),
          self.num_decodes,
          self.inputs_length,
          self.targets_length,
          self.gamma,
          mesh_shape,
      )
      own = memory.target_bytes(target, workload, scores=self.beside > 0)
      others = (
          _drafter_bytes(each, workload, target.vocab_size) for each in found
      )
      # While a drafter is read, the one before is still there.
      largest = sorted(others, key=lambda has: sum(x.total for x in has))[-2:]
      every = [own, *itertools.chain(*largest)]
      weights = sum(x.params for x in every)
      copies = memory.copy_bytes(weights, target.dtype, platform)
      return memory.peak_bytes(every) + copies

    return needs


@dataclasses.dataclass(frozen=True)
class Placed:
  """A target with its mesh and its drafters, with weights still to be read."""

  target: models.Found
  drafters: Drafters
  batch_size: int  # the largest of several
  line: str  # what was chosen and why, and what it takes


def this_machine() -> Machine:
  device, count = jax.local_devices()[0], jax.local_device_count()
  free = memory.available_bytes()
  if device.platform == 'cpu':  # simulated devices share the host's memory
    free /= count
  return Machine(device.platform, device.device_kind, count, free)


def place(
    target: models.Found,
    find: Callable[[models.Found], Drafters],
    batches: Batches,
    mesh_shape: Sequence[int] | None,
) -> Placed:
  """Find drafters, and place them and the target on the devices.

  Drafters take the target's mesh, which may be given with the target, or by its
  devices along 'data' and 'model'; None to choose them.

  Raises:
    DoesNotFitError: with what decoding needs, and how much of it is missing.
  """
  if mesh_shape is not None and target.mesh is None:
    mesh = sharding.from_shape(mesh_shape)
    target = dataclasses.replace(target, mesh=mesh)
  found, machine = find(target), this_machine()
  needs = batches.needs(target.config, found, machine.platform)
  dtype = jnp.dtype(target.config.dtype).name
  shape, size, num_bytes = _choose(
      f'{target.checkpoint} in {dtype}',
      machine,
      needs,
      batches.sizes,
      mesh_shape,
  )
  if mesh_shape is None and math.prod(shape) > 1:
    target = dataclasses.replace(target, mesh=sharding.from_shape(shape))
    found = find(target)
  if dtype == chips.suited_dtype():
    why = 'native' if dtype == 'bfloat16' else 'bfloat16 is not native'
    dtype = f'{dtype} ({why})'
  if batches.sizes is None:
    sizes = f'{size} ({size // shape[0]} per device)'
  else:
    sizes = ', '.join(map(str, batches.sizes))
  line = (
      f'{machine}: {dtype}, {_mesh_setting(machine, shape, mesh_shape)},'
      f' batch_size={sizes}; weights, caches and logits take'
      f' {memory.text(num_bytes)} of each device'
  )
  return Placed(target, found, size, line)


def place_training(
    networks: Sequence[network_lib.Network],
    num_examples: int,
    mesh_shape: Sequence[int] | None,
) -> jax.sharding.Mesh | None:
  """Return the mesh of a training; say on stderr which and why.

  Args:
    networks: Networks whose parameters are held in float32; one twice for its
      gradients.
    num_examples: Examples that are computed together.
    mesh_shape: Devices along 'data' and 'model'; None to choose them.
  """
  if mesh_shape is not None:
    sharding.check_batch(sharding.from_shape(mesh_shape), num_examples)
  machine = this_machine()
  needs = lambda _, shape: sum(memory.weight_bytes(x, shape) for x in networks)
  what = f'A training with {memory.text(needs(1, (1, 1)))} of parameters'
  shape, _, num_bytes = _choose(
      what, machine, needs, [num_examples], mesh_shape
  )
  print(
      f'{machine}: {_mesh_setting(machine, shape, mesh_shape)}; the parameters'
      f' alone take {memory.text(num_bytes)} of each device',
      file=sys.stderr,
  )
  return sharding.from_shape(shape)


def check_params(
    shapes: contracts.Params, shardings: contracts.Params, dtype: Any
) -> None:
  """Check that parameters, as they are sharded, fit before any is read."""
  size = lambda x, where: math.prod(where.shard_shape(x.shape))
  sizes = jax.tree.map(size, shapes, shardings)
  num_bytes = sum(jax.tree.leaves(sizes)) * jnp.dtype(dtype).itemsize
  machine = this_machine()
  if num_bytes > machine.free_bytes:
    raise DoesNotFitError(
        f'The parameters alone take {memory.text(num_bytes)} of each device'
        f' ({machine}). Partition them over more devices, or read them in'
        ' bfloat16.'
    )


def _choose(
    what: str,
    machine: Machine,
    needs: Needs,
    sizes: Sequence[int] | None,
    mesh_shape: Sequence[int] | None,
) -> tuple[Shape, int, int]:
  """Return mesh, batch size and bytes per device, or refuse `what`.

  The first candidate that leaves room is chosen, else the first that fits.
  """
  tried = []
  for shape, size in _candidates(machine, sizes, mesh_shape):
    tried.append((shape, size, needs(size, shape)))
    if tried[-1][-1] <= machine.free_bytes * _ROOM:
      return tried[-1]
  for choice in tried:
    if choice[-1] <= machine.free_bytes:
      return choice
  shape, size, num_bytes = tried[-1]
  raise DoesNotFitError(
      f'{what} needs {memory.text(num_bytes)} of each device at'
      f' mesh_shape={shape} and batch_size={size}, and'
      f' {memory.text(num_bytes - machine.free_bytes)} are missing ({machine}).'
      ' More devices along the second axis of mesh_shape, or a smaller'
      ' batch_size, need less of each.',
      batch_size=size,
      mesh_shape=mesh_shape,
  )


def _candidates(
    machine: Machine,
    sizes: Sequence[int] | None,
    mesh_shape: Sequence[int] | None,
) -> Iterator[tuple[Shape, int]]:
  """Yield meshes and batch sizes, the preferred ones first."""
  if mesh_shape is not None:
    shapes = [tuple(mesh_shape)]
  else:
    # The size of a mesh divides the number of devices: others may not be a
    # rectangle of TPU chips.
    shapes = [
        (math.gcd(machine.count // parts, *(sizes or ())), parts)
        for parts in range(1, machine.count + 1)
        if machine.count % parts == 0
    ]
  for shape in shapes:
    if sizes is not None:
      yield shape, max(sizes)
      continue
    per_device = _ON_CPU if machine.platform == 'cpu' else _ON_CHIP
    while per_device:
      yield shape, per_device * shape[0]
      per_device //= 2


def _drafter_bytes(
    drafter: drafting.Drafting,
    workload: memory.Workload,
    vocab_size: int,
) -> list[memory.DeviceBytes]:
  """Return the bytes per device of what a drafter has, part by part."""
  # What is loaded is no longer free.
  models_to_read = drafter.models if drafter.read else ()
  networks = [
      memory.draft_bytes(
          model.config,
          dataclasses.replace(
              workload,
              draft_model_parallel=model.rules == sharding.MODEL_PARALLEL,
          ),
          vocab_size,
      )
      for model in models_to_read
  ]
  if not networks:
    networks = [memory.draft_bytes(None, workload, vocab_size)]
  others = memory.DeviceBytes(drafter.num_bytes, 0, 0, 0)
  return [*networks, others]


def _mesh_setting(
    machine: Machine, shape: Shape, given: Sequence[int] | None
) -> str:
  """Return the setting of a mesh, and why it was chosen."""
  text = f'mesh_shape={shape}'
  if given is not None or machine.count == 1:
    return text
  if shape[1] > 1:
    why = f'the weights need {shape[1]} devices'
  elif shape[0] < machine.count:
    why = 'the weights fit a device, and the batch is not split further'
  else:
    why = 'the weights fit a device'
  return f'{text} ({why})'
