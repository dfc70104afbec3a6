# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A pair of abstract models, with shapes and shardings, for a topology."""

from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import input_batch
from speculative_t5x.loading import models
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.speculation import sampling as sampling_lib


def make_model(
    place: topology.Topology,
    config: t5.T5Config,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> models.Model:
  """Return an abstract model, prepared as `models.make_model` prepares one."""
  prepared = config.prepared(place.platform, merged=place.mesh is None)
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
  return models.Model(prepared, params, mesh=place.mesh, rules=rules)


def replicated(place: topology.Topology, tree: Any) -> Any:
  """Return the shapes of a tree's arrays, each whole on every device."""
  where = place.replicated()
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where), tree
  )


def make_batch(
    place: topology.Topology, examples: int, inputs_length: int
) -> input_batch.InputBatch:
  """Return an abstract batch of inputs, with its rows along the data axis."""
  by_row = place.replicated()
  if place.mesh is not None:
    by_row = sharding.named_sharding(
        place.mesh, sharding.REPLICATED, ('batch',), (examples,)
    )
  tokens, count = (
      jax.ShapeDtypeStruct(shape, jnp.int32, sharding=by_row)
      for shape in ((examples, inputs_length), (examples,))
  )
  sampling = replicated(place, sampling_lib.GREEDY.as_arrays())
  return input_batch.InputBatch(
      inputs=tokens,
      example_ids=count,
      limits=count,
      seed=replicated(place, jax.ShapeDtypeStruct((), jnp.int32)),
      sampling=sampling,
      draft_sampling=sampling,
  )
