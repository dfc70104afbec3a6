# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of published numbers of chips, and of described topologies."""

import importlib.metadata

import jax
import pytest

from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.research.tpu_aot import topology
from tests.research.tpu_aot import libtpu


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
      'name', [None, 'v4', 'v9:1x1x1', 'v4:1x1x1x1', 'v4:2x2x1\n', 'v4-8']
  )
  def test_unknown_name(self, name):
    with pytest.raises(topology.TopologyError, match='no topology'):
      topology.describe(name)

  def test_without_libtpu(self, monkeypatch):
    def version(name):
      raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, 'version', version)
    with pytest.raises(topology.TopologyError, match='not installed'):
      topology.describe('v4:1x1x1')


class TestWithMesh:

  @pytest.mark.parametrize('shape', [None, (1, 1)])
  def test_one_device(self, shape):
    here = topology.Topology('here', chips.CHIPS['v4'], jax.devices()[:1])
    place = here.with_mesh(shape)
    assert place.mesh is None
    assert place.replicated().device_set == set(here.devices)

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
    devices = jax.devices()[:1] * 2
    two = topology.Topology('two', chips.CHIPS['v4'], devices)
    with pytest.raises(sharding.MeshError):
      two.with_mesh(shape)
