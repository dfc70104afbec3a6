# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of T5X's mesh on slices of TPUs, with devices that stand for theirs."""

import dataclasses
import itertools
import types

import gin
import jax
import pytest
from t5x import partitioning

from speculative_t5x import t5x_guest


@dataclasses.dataclass(frozen=True)
class _Chip:
  device_kind: str
  coords: tuple[int, int, int]
  process_index: int
  core_on_chip: int = 0
  platform: str = 'tpu'


def _slice(kind, bounds, host):
  """Returns the chips of a slice; each host has a box of them."""
  hosts = {}
  for coords in itertools.product(*map(range, bounds)):
    box = tuple(at // size for at, size in zip(coords, host))
    yield _Chip(kind, coords, hosts.setdefault(box, len(hosts)))


_SLICES = {
    'one chip of v4': ('TPU v4', (1, 1, 1), (1, 1, 1)),
    'v4-8': ('TPU v4', (2, 2, 1), (2, 2, 1)),
    'v4-16': ('TPU v4', (2, 2, 2), (2, 2, 1)),
    'v4-32': ('TPU v4', (2, 2, 4), (2, 2, 1)),
    'v4-64': ('TPU v4', (2, 4, 4), (2, 2, 1)),
    'v5litepod-4': ('TPU v5 lite', (2, 2, 1), (2, 2, 1)),
    'v5litepod-16': ('TPU v5 lite', (4, 4, 1), (2, 2, 1)),
    'v5p-16': ('TPU v5p', (2, 2, 2), (2, 2, 1)),
    'v6e-8': ('TPU v6 lite', (2, 4, 1), (2, 4, 1)),
}


@pytest.fixture
def slices(monkeypatch):
  """Puts a slice in the place of this machine's devices."""

  def use(name):
    chips = [*_slice(*_SLICES[name])]
    local = [chip for chip in chips if chip.process_index == 0]
    monkeypatch.setattr(jax, 'devices', lambda *_: chips)
    monkeypatch.setattr(jax, 'local_devices', lambda *_: local)
    monkeypatch.setattr(
        partitioning, 'Mesh',
        lambda devices, axis_names: types.SimpleNamespace(
            devices=devices, axis_names=axis_names
        ),
    )  # fmt: skip
    return chips

  return use


@pytest.mark.parametrize('name', _SLICES)
def test_every_number_that_divides_the_slice(slices, name):
  """T5X takes the submesh, and splits all chips by it."""
  chips = slices(name)
  for number in (1, 2, 4, 8, 16):
    if number > len(chips):
      continue
    mesh = partitioning.get_mesh(t5x_guest.submesh(number))
    assert mesh.devices.shape == (len(chips) // number, number)
    assert {*mesh.devices.flat} == {*chips}


@pytest.mark.parametrize(
    ('name', 'number', 'expected'),
    [
        ('v4-8', 4, (2, 2, 1, 1)),
        ('v4-16', 4, (2, 2, 1, 1)),  # on one host
        ('v4-16', 8, (2, 2, 2, 1)),
        ('v5litepod-4', 1, (1, 1, 1, 1)),
        ('v6e-8', 8, (2, 4, 1, 1)),
    ],
)
def test_box_is_like_a_cube(slices, name, number, expected):
  slices(name)
  assert t5x_guest.submesh(number) == expected


@pytest.mark.parametrize(
    ('name', 'number'),
    [
        ('v4-16', 8), ('v4-64', 8), ('v5litepod-4', 1), ('v5p-16', 4),
        ('v6e-8', 8),
    ],
)  # fmt: skip
def test_t5x_has_no_such_mesh(slices, name, number):
  """If it has one day, configs/t5x/submesh.gin can go."""
  slices(name)
  with pytest.raises((ValueError, AssertionError), match='mesh'):
    partitioning.default_mesh(number)


def test_too_many_partitions(slices):
  slices('v4-8')
  with pytest.raises(ValueError, match=r'2 x 2 x 1 .*NUM_PARTITIONS.*1, 2, 4'):
    t5x_guest.submesh(8)


def test_gin_file_on_this_machine():
  """After T5X's own file, which sets the number of partitions."""
  gin.clear_config()
  with gin.unlock_config():
    gin.parse_config(
        'from __gin__ import dynamic_registration\n'
        'from t5x import partitioning\n'
        'partitioning.PjitPartitioner.num_partitions = 1'
    )
    gin.parse_config_file('configs/t5x/submesh.gin')
  partitioner = gin.get_configurable(partitioning.PjitPartitioner)()
  assert partitioner.mesh.shape['model'] == 1
  gin.clear_config()
