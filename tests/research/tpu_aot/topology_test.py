# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of describing TPUs, and of invalid descriptions."""

import importlib.metadata

import pytest

from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.research.tpu_aot import topology
from tests.research.tpu_aot import libtpu


class TestDescribe:

  @libtpu.needed
  @pytest.mark.parametrize(
      ('name', 'count', 'kind'),
      [
          ('v4:1x1x1', 1, 'TPU v4'),
          ('v4:2x2x1', 4, 'TPU v4'),
          ('v5e:1x1', 1, 'TPU v5 lite'),
          ('v5e:2x2', 4, 'TPU v5 lite'),
          ('v5p:1x1x1', 1, 'TPU v5'),
          ('v6e:1x1', 1, 'TPU v6 lite'),
      ],
  )
  def test_one_device_per_chip(self, name, count, kind):
    described = libtpu.describe(name)
    assert described.name == name
    assert described.chip is chips.CHIPS[name.split(':')[0]]
    assert len(described.devices) == count
    assert {device.device_kind for device in described.devices} == {kind}

  @pytest.mark.parametrize(
      'name',
      [None, 'v4', 'v9:1x1x1', 'v4:1x1x1x1', ' v4:2x2', 'v4:2x2x1\n', 'v4-8'],
  )
  def test_unknown_name(self, name):
    with pytest.raises(topology.TopologyError) as error:
      topology.describe(name)
    assert f'no topology {name!r}' in str(error.value)
    assert 'v4, v5e, v5p, v6e' in str(error.value)


def test_without_libtpu(monkeypatch):
  def version(name):
    raise importlib.metadata.PackageNotFoundError(name)

  monkeypatch.setattr(importlib.metadata, 'version', version)
  with pytest.raises(topology.TopologyError, match='not installed'):
    topology.describe('v4:1x1x1')
