# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pair of abstract models, with shapes and shardings, to compile for a TPU.

Legend: examples, inputs_length, length (of the outputs).
"""

from collections.abc import Sequence
import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.drafters import tables
from speculative_t5x.loading import models
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research.tpu_aot import topology as topology_lib
from speculative_t5x.speculation import sampling as sampling_lib


@dataclasses.dataclass(frozen=True)
class Place:
  """The devices on which models are placed.

  Attributes:
    topology: the devices.
    mesh: the mesh of all devices, data x model; None for one device.
  """

  topology: topology_lib.Topology
  mesh: jax.sharding.Mesh | None

  def replicated(self) -> jax.sharding.Sharding:
    """Returns the sharding that replicates an array on every device."""
    if self.mesh is None:
      return jax.sharding.SingleDeviceSharding(self.topology.devices[0])
    return sharding.replicated(self.mesh)


def make_place(
    topology: topology_lib.Topology, mesh_shape: Sequence[int] | None
) -> Place:
  """Makes a mesh of all devices of a topology.

  Args:
    topology: the devices.
    mesh_shape: numbers of devices along the data and model axes; None for all
      devices along the model axis.
  Raises:
    sharding.MeshError: if `mesh_shape` is not two numbers, or if their product
      is not the number of devices.
  """
  count = len(topology.devices)
  if mesh_shape is None:
    mesh_shape = 1, count
  if not isinstance(mesh_shape, Sequence) or len(mesh_shape) != 2:
    raise sharding.MeshError(
        'mesh_shape must be two numbers of devices, along the data and model'
        f' axes, got {mesh_shape!r}.'
    )
  data, model = mesh_shape
  sharding.check_axes(data, model)
  if data * model != count:
    raise sharding.MeshError(
        f'A mesh of {data} x {model} (data x model) has {data * model} devices,'
        f' and {topology.name} has {count}. Choose another mesh or another'
        ' topology.'
    )
  mesh = sharding.make_mesh(data, model, topology.devices)
  return Place(topology, None if count == 1 else mesh)


def make_model(
    config: t5.T5Config,
    place: Place,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
    min_block: int | None = None,
) -> models.Model:
  """Returns an abstract model, prepared as `models.make_model` prepares one.

  Args:
    config: the config of the checkpoint's network.
    place: the devices on which the model is placed.
    rules: the sharding rules on a mesh.
    min_block: see `t5.T5Config`; None for the default on a TPU.
  """
  prepared = config.prepared('tpu', merged=place.mesh is None)
  if min_block is not None:
    prepared = dataclasses.replace(prepared, min_block=min_block)
  params = models.abstract_params(prepared)
  if place.mesh is None:
    shardings = jax.tree.map(lambda _: place.replicated(), params)
  else:
    shardings = models.param_shardings(prepared, place.mesh, rules)
  is_float = lambda x: jnp.issubdtype(x.dtype, jnp.floating)
  params = jax.tree.map(
      lambda x, where: jax.ShapeDtypeStruct(
          x.shape,
          jnp.dtype(config.dtype) if is_float(x) else x.dtype,
          sharding=where,
      ),
      params,
      shardings,
  )
  num_params = sum(x.size for x in jax.tree.leaves(params))
  return models.Model(prepared, params, num_params, None, place.mesh, rules)


def make_table(shapes: tables.Table, place: Place) -> tables.Table:
  """Returns an abstract table, whole on every device.

  Args:
    shapes: shapes of its arrays, as `table_source.abstract_table` returns them.
    place: the devices.
  """
  where = place.replicated()
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where), shapes
  )


def make_request(
    place: Place, examples: int, inputs_length: int
) -> requests_lib.Request:
  """Returns an abstract batch of inputs."""
  sampling = sampling_lib.GREEDY.as_arrays()
  count = jax.ShapeDtypeStruct((examples,), jnp.int32)
  request = requests_lib.Request(
      inputs=jax.ShapeDtypeStruct(
          (examples, inputs_length), jnp.int32
      ),
      example_ids=count,
      limits=count,
      seed=jax.ShapeDtypeStruct((), jnp.int32),
      sampling=sampling,
      draft_sampling=sampling,
  )

  def put(x):
    where = place.replicated()
    if place.mesh is not None and jnp.ndim(x):
      where = sharding.named_sharding(
          place.mesh, sharding.REPLICATED, ('batch',), x.shape[:1]
      )
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)

  return jax.tree.map(put, request)
