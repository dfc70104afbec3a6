# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sharding of parameters, caches and rows, by logical axis names.

As in T5X, a mesh has two axes: examples are partitioned along `data`; heads,
vocabulary and feed-forward units are partitioned along `model`. A network names
the axes of its arrays, and rules map the names to mesh axes. An axis whose size
is not divisible by the number of devices is replicated.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import math
from typing import Any

from flax.linen import partitioning
import jax
from jax import lax
from jax.experimental import layout
import jax.numpy as jnp

from speculative_t5x.speculation import ranges

DATA_AXIS = 'data'
MODEL_AXIS = 'model'
AXES = DATA_AXIS, MODEL_AXIS
# The compiler partitions what no constraint names. Later versions of JAX have
# another default.
_AXIS_TYPES = (jax.sharding.AxisType.Auto,) * len(AXES)

# Logical axis names and the mesh axis or axes along which each is partitioned.
Rules = Sequence[tuple[str, str | tuple[str, ...] | None]]
Mesh = jax.sharding.Mesh | jax.sharding.AbstractMesh

_UNCUT = (
    'embed', 'kv', 'length', 'relpos_buckets', 'abspos_buckets', 'layers',
    'stack', 'mlp_activations',
)  # fmt: skip

# The default of T5X's `standard_logical_axis_rules`.
MODEL_PARALLEL: Rules = (
    ('batch', DATA_AXIS),
    *((name, MODEL_AXIS) for name in ('vocab', 'mlp', 'heads', 'joined_kv')),
    *((name, None) for name in _UNCUT),
)
# The parameters are replicated, which suits a small draft model.
REPLICATED: Rules = (('batch', DATA_AXIS),)


class MeshError(ranges.ArgumentError):
  """A mesh does not fit the devices or the batch."""


def make_mesh(
    data: int, model: int, devices: Sequence[jax.Device] | None = None
) -> jax.sharding.Mesh:
  """Make a mesh with axes data and model of the first data * model devices.

  Raises:
    ValueError: if a size is not a whole number of at least 1.
    MeshError: if there are too few devices; if `devices` is None and JAX
      connects several processes.
  """
  ranges.check_settings(ranges.COUNT, data=data, model=model)
  if devices is None:
    check_one_process()
    devices = jax.devices()
  if data * model > len(devices):
    raise MeshError(
        f'A mesh of {data} x {model} (data x model) needs {data * model}'
        f' devices, and there are {len(devices)}. Choose a smaller mesh.'
    )
  return jax.make_mesh(
      (data, model),
      AXES,
      axis_types=_AXIS_TYPES,
      devices=devices[: data * model],
  )


def make_abstract_mesh(data: int, model: int) -> jax.sharding.AbstractMesh:
  """Make a mesh as `make_mesh` does, of no devices, to trace programs."""
  return jax.sharding.AbstractMesh((data, model), AXES, _AXIS_TYPES)


def from_shape(shape: Sequence[int]) -> jax.sharding.Mesh | None:
  """Return the mesh of a job's setting, (data, model); None for one device.

  Raises:
    MeshError: for a shape that is not two numbers; see `make_mesh`.
  """
  if not isinstance(shape, Sequence) or len(shape) != 2:
    message = f'mesh_shape must be (data, model), got {shape}.'
    raise MeshError(message, mesh_shape=shape)
  mesh = make_mesh(*shape)
  return None if mesh.size == 1 else mesh


def check_one_process() -> None:
  """Raise MeshError if JAX connects several processes.

  Their jobs would wait for each other forever.
  """
  if (count := jax.process_count()) > 1:
    raise MeshError(
        f'JAX connects {count} processes, and the jobs of this package run in'
        ' one. Start the job on a single host. The infer job decodes on many by'
        ' Ray (configs/engines/ray.gin), with a model on each; T5X\'s eval and'
        ' infer jobs split one over several (docs/many_machines.md).'
    )


def describe(mesh: Mesh | None) -> dict[str, int]:
  """Return the sizes of the axes by name; empty without a mesh."""
  return {} if mesh is None else dict(mesh.shape)


def check_batch(mesh: Mesh | None, batch_size: int) -> None:
  """Raise MeshError for a batch that the data axis does not divide."""
  if mesh is None or batch_size % mesh.shape[DATA_AXIS] == 0:
    return
  parts = mesh.shape[DATA_AXIS]
  raise MeshError(
      f'batch_size {batch_size} cannot be split evenly along the data axis of'
      f' the mesh {describe(mesh)}. Choose a multiple of {parts}.'
  )


def round_up(mesh: Mesh | None, batch_size: int) -> int:
  """Return the smallest multiple of the data axis from a batch size on."""
  parts = 1 if mesh is None else mesh.shape[DATA_AXIS]
  return -(-batch_size // parts) * parts


def named_sharding(
    mesh: Mesh,
    rules: Rules,
    axes: Sequence[str | None],
    shape: Sequence[int],
) -> jax.sharding.NamedSharding:
  """Return the sharding of an array with named axes.

  An axis without a name is never partitioned. One whose size is not divisible
  by the number of devices is replicated.
  """
  cuts = partitioning.logical_to_mesh_axes(tuple(axes), tuple(rules))
  spec = [
      cut if cut is not None and size % _num_parts(mesh, cut) == 0 else None
      for cut, size in zip(cuts, shape, strict=True)
  ]
  return jax.sharding.NamedSharding(mesh, jax.P(*spec))


def _num_parts(mesh: Mesh, cut: str | tuple[str, ...]) -> int:
  names = (cut,) if isinstance(cut, str) else cut
  return math.prod(mesh.shape[name] for name in names)


def replicated(mesh: Mesh) -> jax.sharding.NamedSharding:
  """Return the sharding that replicates an array on every device."""
  return jax.sharding.NamedSharding(mesh, jax.P())


@contextlib.contextmanager
def scope(mesh: jax.sharding.Mesh | None, rules: Rules) -> Iterator[None]:
  """Set the mesh and rules for `constrain`; do nothing without a mesh.

  Enter it around calls of compiled functions, not inside them.
  """
  if mesh is None:
    yield
    return
  with jax.set_mesh(mesh), partitioning.axis_rules(tuple(rules)):
    yield


def param(
    name: str,
    init: Callable[..., jax.Array],
    shape: tuple[int, ...],
    axes: tuple[str, ...],
    dtype: Any = jnp.float32,
) -> jax.Array:
  """Return a parameter of the module that calls it, with names of its axes."""
  return partitioning.param_with_axes(name, init, shape, dtype, axes=axes)


def constrain(x: jax.Array, axes: Sequence[str | None]) -> jax.Array:
  """Constrain the sharding of an array inside a compiled function.

  The mesh and rules are those in force, which `scope` or T5X has set. Without
  either the array is returned unchanged. For the axes see `named_sharding`.
  """
  rules = partitioning.get_axis_rules()
  mesh = mesh_in_force() if rules else None
  if mesh is None:
    return x
  return lax.with_sharding_constraint(
      x, named_sharding(mesh, rules, axes, x.shape).spec
  )


def gather_logits(logits: jax.Array) -> jax.Array:
  """Gather the logits [batch, block, vocab] along the vocabulary axis.

  With logits partitioned along the vocabulary, every sum over a distribution
  and every step of a search in it would wait for other devices. The logits are
  first constrained to be partitioned; otherwise the compiler gathers the head's
  kernel instead.
  """
  parts = constrain(logits, ('batch', 'length', 'vocab'))
  return constrain(parts, ('batch', 'length', None))


def lay_in_order(x: jax.Array) -> jax.Array:
  """Constrain the axes of an array to lie in memory in their order.

  For arrays that a loop carries or reads: left alone, the compiler may choose
  another order where they are made, and copies them once they are read.

  On a mesh, where XLA would gather it, the array is returned unchanged.
  """
  mesh = mesh_in_force()
  if mesh is not None and mesh.size > 1:
    return x
  in_order = layout.Layout(tuple(range(x.ndim)))
  return layout.with_layout_constraint(x, in_order)


def mesh_in_force() -> Mesh | None:
  """Return the mesh that `scope` or T5X has set, while a call is traced."""
  # JAX has a getter only for the mesh of `jax.set_mesh`. The mesh of
  # `with mesh:`, which T5X uses, is found in a traced sharding constraint.
  try:
    traced = jax.make_jaxpr(lambda x: lax.with_sharding_constraint(x, jax.P()))(
        jax.ShapeDtypeStruct((), jnp.float32)
    )
  except RuntimeError:  # no mesh is in force
    return None
  return traced.eqns[0].params['sharding'].mesh
