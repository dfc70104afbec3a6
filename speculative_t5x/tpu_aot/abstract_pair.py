# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pair that has shapes and places and no numbers, to be compiled for a TPU.

Legend: examples, inputs_length, length (of the outputs).
"""

from collections.abc import Sequence
import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x import loading
from speculative_t5x import sampling as sampling_lib
from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x.networks import preparation
from speculative_t5x.networks import t5
from speculative_t5x.tpu_aot import topology as topology_lib


@dataclasses.dataclass(frozen=True)
class Place:
  """Where models lie.

  Attributes:
    topology: the devices.
    mesh: of all of them, data by model; None for one device.
  """

  topology: topology_lib.Topology
  mesh: jax.sharding.Mesh | None

  def replicated(self) -> jax.sharding.Sharding:
    """Every device holds all of it."""
    if self.mesh is None:
      return jax.sharding.SingleDeviceSharding(self.topology.devices[0])
    return sharding.replicated(self.mesh)


def make_place(
    topology: topology_lib.Topology, mesh_shape: Sequence[int] | None
) -> Place:
  """All devices of a topology as a mesh.

  Args:
    topology: the devices.
    mesh_shape: devices along data and along model; None for all along model.
  Raises:
    sharding.MeshError: for no two numbers, or for another number of devices.
  """
  count = len(topology.devices)
  if mesh_shape is None:
    mesh_shape = 1, count
  if not isinstance(mesh_shape, Sequence) or len(mesh_shape) != 2:
    raise sharding.MeshError(
        'mesh_shape must be two numbers of devices, along data and along model,'
        f' got {mesh_shape!r}.'
    )
  data, model = mesh_shape
  sharding.check_axes(data, model)
  if data * model != count:
    raise sharding.MeshError(
        f'A mesh of {data} x {model} (data x model) has {data * model} devices,'
        f' and {topology.name} has {count}. Choose another mesh, or other'
        ' chips.'
    )
  mesh = sharding.make_mesh(data, model, topology.devices)
  return Place(topology, None if count == 1 else mesh)


def make_model(
    config: t5.T5Config,
    place: Place,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
    min_block: int | None = None,
) -> loading.Model:
  """A model as `loading.make_model` prepares it, without its numbers.

  Args:
    config: of the checkpoint's network.
    place: where it lies.
    rules: how it lies on a mesh.
    min_block: see `t5.T5Config`; None for what is chosen for a TPU.
  """
  prepared = preparation.prepare_config(config, 'tpu')
  if place.mesh is None:
    prepared = preparation.merge_config(prepared)
  if min_block is not None:
    prepared = dataclasses.replace(prepared, min_block=min_block)
  params = loading.abstract_params(prepared)
  if place.mesh is None:
    shardings = jax.tree.map(lambda _: place.replicated(), params)
  else:
    shardings = loading.param_shardings(prepared, place.mesh, rules)
  params = jax.tree.map(
      lambda x, where: jax.ShapeDtypeStruct(
          x.shape, jnp.dtype(config.dtype), sharding=where
      ),
      params,
      shardings,
  )
  num_params = sum(x.size for x in jax.tree.leaves(params))
  return loading.Model(prepared, params, num_params, None, place.mesh, rules)


def make_request(
    place: Place, examples: int, inputs_length: int
) -> token_decoder.Request:
  """A batch of inputs, of shapes alone."""
  law = sampling_lib.make_sampling(0.0)
  count = jax.ShapeDtypeStruct((examples,), jnp.int32)
  request = token_decoder.Request(
      encoder_input_tokens=jax.ShapeDtypeStruct(
          (examples, inputs_length), jnp.int32
      ),
      example_ids=count,
      limits=count,
      seed=jax.ShapeDtypeStruct((), jnp.int32),
      sampling=law,
      draft_sampling=law,
  )

  def put(x):
    where = place.replicated()
    if place.mesh is not None and jnp.ndim(x):
      where = sharding.named_sharding(
          place.mesh, sharding.REPLICATED, ('batch',), x.shape[:1]
      )
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)

  return jax.tree.map(put, request)
