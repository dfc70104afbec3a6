# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of pairs without values, compared with loaded ones."""


import jax
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.research.tpu_aot import topology
from tests import tiny
from tests.research.tpu_aot import libtpu

CONFIG = tiny.config(logits_via_embedding=True, dtype='bfloat16')


def _here() -> topology.Topology:
  """Returns a topology of the device that the test runs on."""
  return topology.Topology('here', chips.CHIPS['v4'], jax.devices()[:1])


class TestMakePlace:

  @pytest.mark.parametrize('mesh_shape', [None, (1, 1)])
  def test_one_device(self, mesh_shape):
    place = abstract_pair.make_place(_here(), mesh_shape)
    assert place.mesh is None
    assert place.replicated().device_set == set(_here().devices)

  @libtpu.needed
  @pytest.mark.parametrize(
      ('mesh_shape', 'expected'),
      [(None, (1, 4)), ((2, 2), (2, 2)), ((4, 1), (4, 1))],
  )
  def test_four(self, mesh_shape, expected):
    described = libtpu.describe('v4:2x2x1')
    place = abstract_pair.make_place(described, mesh_shape)
    assert sharding.describe(place.mesh) == dict(
        zip(('data', 'model'), expected)
    )
    assert set(place.mesh.devices.flat) == set(described.devices)
    assert place.replicated().is_fully_replicated

  @pytest.mark.parametrize(
      ('mesh_shape', 'message'),
      [
          ((1, 4), '1 x 4 .* has 4 devices, and here has 1'),
          ((2, 1), '2 x 1 .* has 2 devices, and here has 1'),
          ((0, 1), 'data axis of the mesh must be .* at least 1, got 0'),
          (4, 'two numbers of devices, .* got 4'),
          ((1, 1, 1), 'two numbers of devices, .* got'),
      ],
  )
  def test_invalid_mesh_of_one_device(self, mesh_shape, message):
    with pytest.raises(sharding.MeshError, match=message):
      abstract_pair.make_place(_here(), mesh_shape)


class TestMakeModel:

  def test_shapes_equal_a_loaded_model(self, monkeypatch):
    """The loaded model is prepared as on a TPU."""
    monkeypatch.setattr(jax, 'default_backend', lambda: 'tpu')
    loaded = tiny.model(CONFIG)
    place = abstract_pair.make_place(_here(), None)
    found = abstract_pair.make_model(CONFIG, place)
    assert found.config == loaded.config
    assert found.config.min_block > 1
    assert jax.tree.map(lambda x: x.shape, found.params) == jax.tree.map(
        lambda x: x.shape, loaded.params
    )
    assert {x.dtype.name for x in jax.tree.leaves(found.params)} == {'bfloat16'}

  def test_on_a_mesh(self):
    """Kernels are not merged on a mesh, and are partitioned by the rules."""
    mesh = jax.sharding.AbstractMesh((1, 2), ('data', 'model'))
    place = abstract_pair.Place(_here(), mesh)
    divided = abstract_pair.make_model(CONFIG, place)
    config = t5_preparation.prepare_config(CONFIG, 'tpu')
    assert divided.config == config
    assert not divided.config.merge_projections
    expected = models.param_shardings(config, mesh, sharding.MODEL_PARALLEL)
    assert jax.tree.map(lambda x: x.sharding, divided.params) == expected
    whole = abstract_pair.make_model(CONFIG, place, sharding.REPLICATED)
    assert all(
        x.sharding.is_fully_replicated for x in jax.tree.leaves(whole.params)
    )


class TestMakeRequest:

  def test_on_a_mesh_rows_are_partitioned(self):
    mesh = jax.sharding.AbstractMesh((2, 2), ('data', 'model'))
    place = abstract_pair.Place(_here(), mesh)
    request = abstract_pair.make_request(place, 4, 12)
    tokens = request.inputs
    assert tokens.sharding.shard_shape(tokens.shape) == (2, 12)
    assert request.limits.sharding.shard_shape((4,)) == (2,)
    assert request.seed.sharding.is_fully_replicated
