# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that T5X's own code forms the meshes, on slices as libtpu has them."""

import math

import jax
import numpy as np
import pytest
from t5x import partitioning

from speculative_t5x import t5x_guest
from tests.research.ahead_of_time import libtpu

# One host, several hosts, and of v5e and v6e slices without a third axis.
SLICES = [
    'v4:1x1x1', 'v4:2x2x1', 'v4:2x2x2', 'v4:2x2x4', 'v4:2x4x4', 'v4:4x4x4',
    'v5e:1x1', 'v5e:2x2', 'v5e:2x4', 'v5e:4x4', 'v5p:2x2x1', 'v5p:2x2x4',
    'v6e:1x1', 'v6e:2x4',
]  # fmt: skip


@pytest.fixture
def on_slice(monkeypatch):
  """Return a function that gives T5X the devices of a slice."""

  def use(name):
    devices = sorted(libtpu.describe(name).devices, key=lambda x: x.id)
    local = [x for x in devices if x.process_index == 0]
    monkeypatch.setattr(jax, 'devices', lambda *_: devices)
    monkeypatch.setattr(jax, 'local_devices', lambda *_: local)
    return devices

  with libtpu.environment():
    yield use


def fit(num_partitions, submesh=None):
  return t5x_guest.fit_to_slice(
      partitioning.PjitPartitioner(num_partitions, submesh)
  )


@libtpu.needed
class TestTPU:

  @pytest.mark.parametrize('name', SLICES)
  def test_powers_of_two_up_to_the_slice(self, on_slice, name):
    devices = on_slice(name)
    for exponent in range(int(math.log2(len(devices))) + 1):
      partitioner = fit(2**exponent)
      mesh = partitioner.mesh
      assert mesh.axis_names == ('data', 'model')
      assert mesh.devices.shape == (len(devices) >> exponent, 2**exponent)
      assert set(mesh.devices.flat) == set(devices)
      # What a host holds is contiguous, as T5X's reading of data needs.
      partitioning.LocalChunker(mesh)
      for replica in mesh.devices:
        places = np.array([x.coords for x in replica])
        box = np.prod(np.ptp(places, axis=0) + 1)
        assert box == len(replica)  # neighbours

  def test_t5xs_own_mesh_stays(self, on_slice):
    on_slice('v4:4x4x4')
    own = partitioning.default_mesh(8)
    assert fit(8).mesh == own

  @pytest.mark.parametrize(
      ('name', 'submesh'),
      [
          ('v4:2x2x2', (2, 2, 2, 1)),  # where T5X has 4 x 2
          ('v4:2x4x4', (2, 2, 2, 1)),
          ('v6e:2x4', (2, 4, 1, 1)),
          ('v5p:2x2x4', (1, 2, 1, 1)),  # on one host
      ],
  )
  def test_compact(self, on_slice, name, submesh):
    on_slice(name)
    assert fit(math.prod(submesh)).mesh == partitioning.get_mesh(submesh)

  @pytest.mark.parametrize(
      ('num_partitions', 'submesh', 'named'),
      [
          (3, None, 'num_partitions = 3'),
          (16, None, 'num_partitions = 16'),
          (None, (4, 2, 1, 1), r'model_parallel_submesh = \(4, 2, 1, 1\)'),
          (1, (4, 2, 1, 1), r'model_parallel_submesh = \(4, 2, 1, 1\)'),
      ],
  )
  def test_what_does_not_fit(self, on_slice, num_partitions, submesh, named):
    on_slice('v4:2x2x2')
    with pytest.raises(ValueError, match=f'{named} .* 1, 2, 4, 8, and'):
      fit(num_partitions, submesh)

  def test_ones_own_submesh_stays(self, on_slice):
    on_slice('v5e:2x4')
    submesh = (1, 4, 1, 1)
    assert fit(None, submesh).mesh == partitioning.get_mesh(submesh)


def test_cpu_has_t5xs_mesh():
  assert fit(1).mesh == partitioning.get_cpu_mesh()
