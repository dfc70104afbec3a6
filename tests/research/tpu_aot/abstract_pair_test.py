# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of models and requests without values, compared with loaded ones."""

import jax

from speculative_t5x.loading import models
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import topology
from tests import tiny

CONFIG = tiny.config(logits_via_embedding=True, dtype='bfloat16')


def _place(*mesh_shape):
  """Returns the device that the test runs on, or an abstract mesh."""
  names = 'data', 'model'
  mesh = jax.sharding.AbstractMesh(mesh_shape, names) if mesh_shape else None
  chip = chips.CHIPS['v4']
  return topology.Topology('here', chip, jax.devices()[:1], mesh)


def test_shapes_equal_a_loaded_model(monkeypatch):
  """The loaded model is prepared as on a TPU."""
  monkeypatch.setattr(jax, 'default_backend', lambda: 'tpu')
  loaded = tiny.model(CONFIG)
  found = abstract_pair.make_model(_place(), CONFIG)
  assert found.config == loaded.config
  assert found.config.min_block > 1
  shapes = lambda model: jax.tree.map(lambda x: x.shape, model.params)
  assert shapes(found) == shapes(loaded)
  assert {x.dtype.name for x in jax.tree.leaves(found.params)} == {'bfloat16'}


def test_models_on_a_mesh():
  """Kernels are not merged on a mesh, and are partitioned by the rules."""
  place = _place(1, 2)
  divided = abstract_pair.make_model(place, CONFIG)
  config = t5_preparation.prepare_config(CONFIG, 'tpu')
  assert divided.config == config
  assert not divided.config.merge_projections
  expected = models.param_shardings(
      config, place.mesh, sharding.MODEL_PARALLEL
  )
  assert jax.tree.map(lambda x: x.sharding, divided.params) == expected
  whole = abstract_pair.make_model(place, CONFIG, sharding.REPLICATED)
  assert all(
      x.sharding.is_fully_replicated for x in jax.tree.leaves(whole.params)
  )


def test_rows_of_a_request_are_partitioned():
  request = abstract_pair.make_request(_place(2, 2), 4, 12)
  tokens = request.inputs
  assert tokens.sharding.shard_shape(tokens.shape) == (2, 12)
  assert request.limits.sharding.shard_shape((4,)) == (2,)
  assert request.seed.sharding.is_fully_replicated
