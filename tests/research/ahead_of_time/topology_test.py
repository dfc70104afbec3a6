# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of chips, topologies, and models without values."""

import dataclasses
import importlib.metadata

import jax
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.research.ahead_of_time import bench
from speculative_t5x.research.ahead_of_time import topology
from tests import tiny
from tests.research.ahead_of_time import libtpu


def _here(*mesh_shape) -> topology.Topology:
  """Return the device that the test runs on, or an abstract mesh."""
  names = 'data', 'model'
  mesh = jax.sharding.AbstractMesh(mesh_shape, names) if mesh_shape else None
  chip = chips.CHIPS['v4']
  return topology.Topology(
      'here', 'tpu', chip, 'a compiler', jax.devices()[:1], mesh
  )


TIED = tiny.config(logits_via_embedding=True, dtype='bfloat16')


def test_shapes_equal_a_loaded_model(monkeypatch):
  """The loaded model is prepared as on a TPU."""
  monkeypatch.setattr(jax, 'default_backend', lambda: 'tpu')
  loaded = tiny.model(TIED)
  found = bench.make_model(_here(), TIED)
  assert found.config == loaded.config
  assert found.config.min_block > 1
  shapes = lambda model: jax.tree.map(lambda x: x.shape, model.params)
  assert shapes(found) == shapes(loaded)
  assert {x.dtype.name for x in jax.tree.leaves(found.params)} == {'bfloat16'}


def test_models_on_a_mesh():
  """Kernels are not merged on a mesh, and are partitioned by the rules."""
  place = _here(1, 2)
  divided = bench.make_model(place, TIED)
  config = TIED.prepared('tpu', merged=False)
  assert divided.config == config
  assert not divided.config.merge_projections
  expected = models.param_shardings(config, place.mesh, sharding.MODEL_PARALLEL)
  assert jax.tree.map(lambda x: x.sharding, divided.params) == expected
  whole = bench.make_model(place, TIED, sharding.REPLICATED)
  assert all(
      x.sharding.is_fully_replicated for x in jax.tree.leaves(whole.params)
  )


def test_rows_of_a_request_are_partitioned():
  batch = bench.make_batch(_here(2, 2), 4, 12)
  tokens = batch.inputs
  assert tokens.sharding.shard_shape(tokens.shape) == (2, 12)
  assert batch.limits.sharding.shard_shape((4,)) == (2,)
  assert batch.seed.sharding.is_fully_replicated


@pytest.mark.parametrize('name', chips.CHIPS)
def test_chips_are_those_of_jax(name):
  tpu = pytest.importorskip('jax.experimental.pallas.tpu')
  cores = 2 if name in ('v4', 'v5p') else 1  # JAX lists each core of a chip
  core = tpu.get_tpu_info_for_chip(tpu.ChipVersion(name), cores)
  chip = chips.CHIPS[name]
  near = lambda per_core, rel: pytest.approx(cores * per_core, rel=rel)
  # JAX counts in 10^9 bytes instead of GiB.
  assert chip.memory_bytes == near(core.hbm_capacity_bytes, 0.08)
  # Google's page on v5p has 2,765 GB/s, and JAX's table 2,460.
  rel = 0.13 if name == 'v5p' else 0.03
  assert chip.bandwidth == near(core.mem_bw_bytes_per_second, rel)
  assert chip.peak == near(core.bf16_ops_per_second, 0.03)
  # The peak is two operations per cycle and cell of the matrix units.
  cells = core.num_mxus * core.mxu_column_size**2
  if chip.clock_hz is not None:
    assert chip.peak == near(2 * cells * chip.clock_hz, 0.03)
    assert chip.seconds(chip.clock_hz) == 1


class TestDescribe:

  @libtpu.needed
  @pytest.mark.parametrize(
      ('name', 'count', 'kind'),
      [
          ('v4:1x1x1', 1, 'TPU v4'),
          ('v4:2x2x1', 4, 'TPU v4'),
          ('v5e:2x2', 4, 'TPU v5 lite'),
          ('v5p:1x1x1', 1, 'TPU v5'),
          ('v6e:1x1', 1, 'TPU v6 lite'),
      ],
  )
  def test_one_device_per_chip(self, name, count, kind):
    described = libtpu.describe(name)
    assert described.chip is chips.CHIPS[name.split(':')[0]]
    assert len(described.devices) == count
    assert {device.device_kind for device in described.devices} == {kind}

  @pytest.mark.parametrize(
      'name',
      [None, 'v4', 'v9:1x1x1', 'v4:1x1x1x1', 'v4:2x2x1\n', 'v4-8', 'h100:2'],
  )
  def test_unknown_name(self, name):
    with pytest.raises(topology.TopologyError, match='no topology'):
      topology.describe(name)

  @pytest.mark.parametrize(
      ('name', 'extra'), [('v4:1x1x1', 'tpu-aot'), ('h100', 'gpu-aot')]
  )
  def test_without_a_compiler(self, monkeypatch, name, extra):
    def version(name):
      raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, 'version', version)
    with pytest.raises(topology.TopologyError, match=extra):
      topology.describe(name)


class TestWithMesh:

  @pytest.mark.parametrize('shape', [None, (1, 1)])
  def test_one_device(self, shape):
    place = _here().with_mesh(shape)
    assert place.mesh is None
    assert place.replicated().device_set == set(_here().devices)

  @libtpu.needed
  @pytest.mark.parametrize(
      ('shape', 'expected'), [(None, (1, 4)), ((2, 2), (2, 2))]
  )
  def test_four(self, shape, expected):
    place = libtpu.describe('v4:2x2x1').with_mesh(shape)
    axes = dict(zip(('data', 'model'), expected))
    assert sharding.describe(place.mesh) == axes
    assert set(place.mesh.devices.flat) == set(place.devices)
    assert place.replicated().is_fully_replicated

  @pytest.mark.parametrize('shape', [(1, 4), (1, 1), (0, 2), 4, (1, 1, 2)])
  def test_refused(self, shape):
    two = dataclasses.replace(_here(), devices=jax.devices()[:1] * 2)
    with pytest.raises(sharding.MeshError):
      two.with_mesh(shape)
