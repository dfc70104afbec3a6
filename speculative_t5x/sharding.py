# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters, caches and rows on a mesh of devices, by logical axis names.

Two axes, as in T5X: examples are dealt out along `data`, heads, vocabulary and
feed-forward units along `model`. A network names the axes of its arrays, rules
say which axis of the mesh each name stands for, and an axis that the mesh does
not divide stays whole.
"""

from collections.abc import Iterator, Sequence
import contextlib
import math

from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

DATA_AXIS = 'data'
MODEL_AXIS = 'model'

# Logical names and the axis of the mesh, or axes, that each is cut along.
Rules = Sequence[tuple[str, str | tuple[str, ...] | None]]
Mesh = jax.sharding.Mesh | jax.sharding.AbstractMesh

_UNCUT = (
    'embed', 'kv', 'length', 'relpos_buckets', 'abspos_buckets', 'layers',
    'stack', 'mlp_activations',
)  # fmt: skip

# What T5X's `standard_logical_axis_rules` gives by default.
MODEL_PARALLEL: Rules = (
    ('batch', DATA_AXIS),
    *((name, MODEL_AXIS) for name in ('vocab', 'mlp', 'heads', 'joined_kv')),
    *((name, None) for name in _UNCUT),
)
# A model that every device holds whole, as suits a small draft.
REPLICATED: Rules = (('batch', DATA_AXIS),)


class MeshError(ValueError):
  """A mesh that the devices or the batch do not fit."""


def make_mesh(
    data: int, model: int, devices: Sequence[jax.Device] | None = None
) -> jax.sharding.Mesh:
  """The first data * model devices as a mesh with axes data and model.

  Args:
    data: parts of a batch.
    model: parts of a model.
    devices: to take; None for those that there are.
  Raises:
    MeshError: for a size that is no whole number from 1 on, or for more parts
      than there are devices.
  """
  check_axes(data, model)
  devices = jax.devices() if devices is None else devices
  if data * model > len(devices):
    raise MeshError(
        f'A mesh of {data} x {model} (data x model) needs {data * model}'
        f' devices, and there are {len(devices)}. Choose a smaller one.'
    )
  return jax.make_mesh(
      (data, model),
      (DATA_AXIS, MODEL_AXIS),
      axis_types=(jax.sharding.AxisType.Auto,) * 2,
      devices=devices[: data * model],
  )


def check_axes(data: int, model: int) -> None:
  """Checks the sizes of a mesh's axes.

  Raises:
    MeshError: for a size that is no whole number from 1 on.
  """
  for name, size in ((DATA_AXIS, data), (MODEL_AXIS, model)):
    if not isinstance(size, int) or size < 1:
      raise MeshError(
          f'The {name} axis of the mesh must be a whole number and at least 1,'
          f' got {size!r}.'
      )


def describe(mesh: Mesh | None) -> dict[str, int]:
  """Sizes of the axes by name; empty without a mesh."""
  return {} if mesh is None else dict(mesh.shape)


def check_batch(mesh: Mesh | None, batch_size: int) -> None:
  """Checks that a batch can be dealt out along the data axis.

  Raises:
    MeshError: if it cannot.
  """
  if mesh is None or batch_size % mesh.shape[DATA_AXIS] == 0:
    return
  parts = mesh.shape[DATA_AXIS]
  raise MeshError(
      f'batch_size {batch_size} cannot be dealt out along the data axis of the'
      f' mesh {describe(mesh)}. Choose a multiple of {parts}.'
  )


def named_sharding(
    mesh: Mesh,
    rules: Rules,
    axes: Sequence[str | None],
    shape: Sequence[int],
) -> jax.sharding.NamedSharding:
  """How an array with named axes lies on the mesh.

  Args:
    mesh: of any axes.
    rules: which logical axis is cut along which of them.
    axes: a name for each axis of the array; None for one that is never cut.
    shape: of the array. An axis that the mesh does not divide stays whole.
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
  """Every device holds all of it."""
  return jax.sharding.NamedSharding(mesh, jax.P())


@contextlib.contextmanager
def scope(mesh: jax.sharding.Mesh | None, rules: Rules) -> Iterator[None]:
  """Puts a mesh and rules in force for `constrain`; nothing without a mesh.

  To be entered around calls of compiled functions, not within them.
  """
  if mesh is None:
    yield
    return
  with jax.set_mesh(mesh), partitioning.axis_rules(tuple(rules)):
    yield


def constrain(x: jax.Array, axes: Sequence[str | None]) -> jax.Array:
  """Fixes where an array lies, inside a compiled function.

  The mesh and the rules are those in force: of `scope`, or of T5X where it
  calls. Without either this does nothing.

  Args:
    x: any array.
    axes: a logical name for each of its axes; None for one that is never cut.
  """
  rules = partitioning.get_axis_rules()
  mesh = _mesh_in_force() if rules else None
  if mesh is None:
    return x
  return lax.with_sharding_constraint(
      x, named_sharding(mesh, rules, axes, x.shape).spec
  )


def _mesh_in_force() -> Mesh | None:
  # JAX names the mesh of `jax.set_mesh` alone. That of `with mesh:`, which T5X
  # enters, shows in what a constraint becomes.
  try:
    traced = jax.make_jaxpr(
        lambda x: lax.with_sharding_constraint(x, jax.P())
    )(jax.ShapeDtypeStruct((), jnp.float32))
  except RuntimeError:  # there is none
    return None
  return traced.eqns[0].params['sharding'].mesh
