# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of describing TPUs, and of invalid descriptions."""

import importlib.metadata
import os

import jax
import pytest

from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.research.tpu_aot import topology
from tests.research.tpu_aot import libtpu


@pytest.fixture
def found(monkeypatch):
  """Returns a function that fakes the installed version of libtpu."""
  version = importlib.metadata.version

  def set_version(value):
    def find(name):
      if name != 'libtpu':
        return version(name)
      if value is None:
        raise importlib.metadata.PackageNotFoundError(name)
      return value

    monkeypatch.setattr(importlib.metadata, 'version', find)

  return set_version


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
      ['', None, 7, 'v4', 'v9:1x1x1', 'v4:1', 'v4:1x1x1x1', 'v4:2x', ' v4:2x2',
       'v4:2x2x1\n', 'v4-8'],
  )  # fmt: skip
  def test_unknown_name(self, name):
    with pytest.raises(topology.TopologyError) as error:
      topology.describe(name)
    assert f'no topology {name!r}' in str(error.value)
    assert 'v4, v5e, v5p, v6e' in str(error.value)

  @libtpu.needed
  def test_invalid_number_of_chips(self):
    with pytest.raises(topology.TopologyError) as error:
      topology.describe('v4:3x1x1')
    message = str(error.value)
    assert message.startswith('libtpu does not know the topology v4:3x1x1:')
    assert 'v4:1x1x1, v4:2x2x1 or v5e:2x4' in message

  @libtpu.needed
  def test_variables_of_the_user_remain(self, monkeypatch):
    monkeypatch.setenv('TPU_WORKER_HOSTNAMES', 'of_the_user')
    monkeypatch.delenv('TPU_SKIP_MDS_QUERY')
    topology.describe('v4:1x1x1')
    assert os.environ['TPU_WORKER_HOSTNAMES'] == 'of_the_user'
    assert os.environ['TPU_SKIP_MDS_QUERY'] == '1'

  def test_without_libtpu(self, found):
    found(None)
    with pytest.raises(topology.TopologyError, match='is not installed'):
      topology.describe('v4:1x1x1')


class TestCheckLibtpu:

  @libtpu.needed
  def test_matching_version(self):
    assert topology.check_libtpu() == importlib.metadata.version('libtpu')

  def test_missing(self, found):
    found(None)
    with pytest.raises(topology.TopologyError) as error:
      topology.check_libtpu()
    assert "pip install '.[tpu-aot]'" in str(error.value)

  def test_another_version(self, found):
    found('0.0.1')
    with pytest.raises(topology.TopologyError) as error:
      topology.check_libtpu()
    message = str(error.value)
    assert 'libtpu 0.0.1 does not match' in message
    assert f'JAX {jax.__version__}, which requires libtpu' in message
    assert "pip install '.[tpu-aot]'" in message

  @pytest.mark.parametrize(
      ('version', 'is_wanted'),
      [('0.0.42', True), ('0.0.42.1', True), ('0.0.43', False)],
  )
  def test_version_that_jax_requires(
      self, monkeypatch, found, version, is_wanted
  ):
    wanted = ['numpy>=2', 'libtpus==7', 'libtpu==0.0.42.*; extra == "tpu"']
    monkeypatch.setattr(importlib.metadata, 'requires', lambda _: wanted)
    found(version)
    if is_wanted:
      assert topology.check_libtpu() == version
      return
    with pytest.raises(topology.TopologyError, match=r'libtpu==0\.0\.42\.\*'):
      topology.check_libtpu()

  @pytest.mark.parametrize('requires', [None, ['numpy>=2']])
  def test_jax_without_a_requirement(self, monkeypatch, found, requires):
    monkeypatch.setattr(importlib.metadata, 'requires', lambda _: requires)
    found('0.0.1')
    assert topology.check_libtpu() == '0.0.1'
