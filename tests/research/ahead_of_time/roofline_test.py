# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of chips, topologies, bounds of times, and models without values."""

import dataclasses
import importlib.metadata

import jax
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.research.ahead_of_time import abstract_pair
from speculative_t5x.research.ahead_of_time import roofline
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.speculation import state as state_lib
from tests import tiny
from tests.research.ahead_of_time import libtpu

LENGTH, INPUTS_LENGTH, GAMMA = 20, 12, 3
# So wide that norms and biases are negligible.
CONFIG = tiny.config(
    vocab_size=4096, emb_dim=256, num_heads=4, head_dim=64, mlp_dim=512,
    dtype='bfloat16',
)  # fmt: skip


def _here(*mesh_shape) -> topology.Topology:
  """Return the device that the test runs on, or an abstract mesh."""
  names = 'data', 'model'
  mesh = jax.sharding.AbstractMesh(mesh_shape, names) if mesh_shape else None
  chip = chips.CHIPS['v4']
  return topology.Topology(
      'here', 'tpu', chip, 'a compiler', jax.devices()[:1], mesh
  )


def _model(*mesh_shape):
  return abstract_pair.make_model(_here(*mesh_shape), CONFIG)


def _count(
    model, rows=1, block=1, gamma=0, inputs_length=INPUTS_LENGTH
) -> roofline.Call:
  return roofline.count(
      model,
      rows=rows,
      block=block,
      slots=state_lib.cache_slots(LENGTH, gamma),
      inputs_length=inputs_length,
  )


class TestCount:

  def test_bytes_per_row(self):
    """Weights are read once for all rows and for all positions of a block."""
    one, three = _count(_model()), _count(_model(), rows=3, block=4)
    assert three.weight_bytes == one.weight_bytes
    assert three.cache_bytes == 3 * one.cache_bytes
    kept = 2 * 2 * 2 * 256 * (LENGTH + 1 + INPUTS_LENGTH)
    assert one.cache_bytes == kept + INPUTS_LENGTH  # which inputs are tokens

  def test_operations(self):
    """Two per weight and position, and as many per key or value."""
    one, block = _count(_model()), _count(_model(), block=4)
    assert block.operations == pytest.approx(4 * one.operations, rel=0.01)
    # Attention of 2 layers to the inputs is 4 * 2 * 256 per input token.
    longer = _count(_model(), inputs_length=INPUTS_LENGTH + 1000)
    more = longer.operations - one.operations
    assert more == pytest.approx(4 * 2 * 256 * 1000, rel=0.03)
    weights = one.weight_bytes / 2  # bfloat16
    assert one.operations == pytest.approx(2 * weights, rel=0.05)

  def test_seconds_are_the_longer_of_both_times(self):
    chip = chips.Chip('a', 1, bandwidth=10.0, peak=100.0, clock_hz=None)
    assert roofline.Call(30, 20, 400).seconds(chip) == 5
    assert roofline.Call(30, 20, 600).seconds(chip) == 6

  def test_four_devices_have_a_quarter_each(self):
    """Everything is partitioned except for norms and biases."""
    whole, part = _count(_model()), _count(_model(1, 4))
    assert part.cache_bytes == pytest.approx(whole.cache_bytes / 4, rel=0.01)
    whole_params = 2 * 7 * 256  # norms, two bytes per number
    divided = (whole.weight_bytes - whole_params) / 4
    assert part.weight_bytes == divided + whole_params
    assert part.operations == pytest.approx(whole.operations / 4, rel=0.01)

  def test_data_axis_does_not_partition(self):
    """The rows are already those of one device."""
    assert _count(_model(4, 1), rows=2) == _count(_model(), rows=2)


TIED = tiny.config(logits_via_embedding=True, dtype='bfloat16')


def test_shapes_equal_a_loaded_model(monkeypatch):
  """The loaded model is prepared as on a TPU."""
  monkeypatch.setattr(jax, 'default_backend', lambda: 'tpu')
  loaded = tiny.model(TIED)
  found = abstract_pair.make_model(_here(), TIED)
  assert found.config == loaded.config
  assert found.config.min_block > 1
  shapes = lambda model: jax.tree.map(lambda x: x.shape, model.params)
  assert shapes(found) == shapes(loaded)
  assert {x.dtype.name for x in jax.tree.leaves(found.params)} == {'bfloat16'}


def test_models_on_a_mesh():
  """Kernels are not merged on a mesh, and are partitioned by the rules."""
  place = _here(1, 2)
  divided = abstract_pair.make_model(place, TIED)
  config = TIED.prepared('tpu', merged=False)
  assert divided.config == config
  assert not divided.config.merge_projections
  expected = models.param_shardings(config, place.mesh, sharding.MODEL_PARALLEL)
  assert jax.tree.map(lambda x: x.sharding, divided.params) == expected
  whole = abstract_pair.make_model(place, TIED, sharding.REPLICATED)
  assert all(
      x.sharding.is_fully_replicated for x in jax.tree.leaves(whole.params)
  )


def test_rows_of_a_request_are_partitioned():
  batch = abstract_pair.make_batch(_here(2, 2), 4, 12)
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
