# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is chosen for a machine, and refused, without its devices."""

import dataclasses
import math
import types

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.loading import models
from speculative_t5x.loading import placement
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from tests import tiny

_GIB = 2**30
_CHECKPOINT = types.SimpleNamespace(source='a target')
_LENGTHS = memory.Lengths(inputs=16, targets=16, gamma=3)
_V4 = placement.Machine('tpu', 'TPU v4', 4, 30.75 * _GIB)


def _source(config=None, rules=sharding.MODEL_PARALLEL):
  config = config or tiny.config(dtype='bfloat16')
  return models.Found(config, stored=_CHECKPOINT, rules=rules)


def _found(*drafts, num_bytes=0):
  return drafting.Drafting(
      models=drafts, num_bytes=num_bytes, read=drafting.Drafting
  )


@pytest.fixture
def place(monkeypatch):
  """Return a function that places on a machine, with an abstract mesh."""

  def from_shape(shape):
    is_one = tuple(shape) == (1, 1)
    return None if is_one else sharding.make_abstract_mesh(*shape)

  def place(
      machine, mesh_shape=None, *, sizes=None, target=None, drafters=(),
      lengths=_LENGTHS,
  ):  # fmt: skip
    monkeypatch.setattr(placement, 'this_machine', lambda: machine)
    monkeypatch.setattr(sharding, 'from_shape', from_shape)
    placed = placement.place(
        target or _source(),
        lambda target: [each(target) for each in drafters],
        lengths,
        sizes,
        mesh_shape,
    )
    mesh = placed.target.mesh
    shape = tuple(mesh.shape.values()) if mesh else (1, 1)
    return shape, placed.batch_size, placed.line

  return place


def _needed(mesh_shape, config=None, drafters=(), size=8):
  workload = memory.Workload(_LENGTHS, size, mesh_shape)
  return placement.needed_bytes(_source(config), drafters, workload)


def _holding(num_bytes, **changes):
  """Return a machine that this number of bytes fills to the full."""
  return dataclasses.replace(_V4, free_bytes=num_bytes, **changes)


class TestChoice:

  @pytest.mark.parametrize(
      ('sizes', 'count', 'shape', 'batch_size'),
      [
          (None, 1, (1, 1), 8),
          (None, 4, (4, 1), 32),
          ([1], 4, (1, 1), 1),
          ([6], 4, (2, 1), 6),
          ([8, 4], 8, (4, 1), 8),
          (None, 0, (1, 1), 1),  # a CPU
      ],
  )
  def test_all_devices_that_divide_the_batch(
      self, place, sizes, count, shape, batch_size
  ):
    machine = placement.Machine('cpu', 'cpu', 1, math.inf)
    if count:
      machine = dataclasses.replace(_V4, count=count)
    found = place(machine, sizes=sizes)
    assert found[:2] == (shape, batch_size)
    assert f'mesh_shape={shape}' in found[2] and 'bfloat16' in found[2]

  def test_as_few_model_partitions_as_hold_the_weights(self, place):
    """Room is left where there is some."""
    config = tiny.config(dtype='bfloat16', num_heads=4, head_dim=8)
    for shape in ((2, 2), (1, 4)):
      machine = _holding(_needed(shape, config, size=2) / 0.9)
      found, *_ = place(machine, sizes=[2], target=_source(config))
      assert found == shape
    exact = _needed((1, 1), size=1)
    assert place(_holding(exact, count=1), sizes=[1])[0] == (1, 1)
    assert place(_holding(exact, count=2), sizes=[1])[0] == (1, 2)

  def test_drafter_takes_the_mesh(self, place):
    meshes = []

    def find(target):
      meshes.append(target.mesh)
      return _found()

    place(_V4, drafters=[find])
    place(_V4, (2, 2), drafters=[find])
    assert [x and tuple(x.shape.values()) for x in meshes] == [
        None, (4, 1), (2, 2)
    ]  # fmt: skip

  def test_what_drafters_hold(self):
    """Two at a time, replicated or not, and other parameters beside."""
    needed = lambda *drafters: _needed((1, 2), drafters=drafters)
    parallel = _found(_source())
    replicated = _found(_source(rules=sharding.REPLICATED))
    sizes = [
        needed(parallel),
        needed(replicated),
        needed(replicated, replicated),
        needed(replicated, replicated, replicated),
    ]
    assert sizes[0] < sizes[1] < sizes[2] == sizes[3]
    assert needed(_found(_source(), num_bytes=7)) == sizes[0] + 7
    assert needed(drafting.Drafting()) < sizes[0]


@pytest.mark.parametrize('given', [(1, 1), None])
def test_refusal_has_the_numbers(place, given):
  """The last byte decides."""
  config = tiny.config(dtype='bfloat16', num_heads=4, head_dim=8)
  options = {'sizes': [8] if given else None, 'target': _source(config)}
  shape = given or (1, 4)
  exact = _needed(shape, config)
  assert place(_holding(exact), given, **options)[0] == shape
  machine = _holding(exact - 2**30)
  with pytest.raises(placement.DoesNotFitError) as error:
    place(machine, given, **options)
  for number in (memory.text(exact), '1.00 GiB are missing', f'{shape}'):
    assert number in str(error.value)


def test_mesh_of_a_training(monkeypatch):
  assert placement.training_mesh(3, None) is None
  with pytest.raises(sharding.MeshError, match='Choose a smaller'):
    placement.training_mesh(3, (2, 1))
  mesh = sharding.make_abstract_mesh(2, 1)
  monkeypatch.setattr(sharding, 'from_shape', lambda shape: mesh)
  with pytest.raises(sharding.MeshError, match='batch_size 3'):
    placement.training_mesh(3, (2, 1))


@pytest.mark.parametrize(
    ('platform', 'capability', 'dtype'),
    [
        ('cpu', None, 'float32'),
        ('tpu', None, 'bfloat16'),
        ('gpu', '9.0', 'bfloat16'),
        ('gpu', '12.0', 'bfloat16'),
        ('gpu', '7.5', 'float32'),
        ('gpu', 'gfx90a', 'float32'),
    ],
)
def test_dtype(monkeypatch, platform, capability, dtype):
  device = types.SimpleNamespace(platform=platform)
  if capability is not None:
    device.compute_capability = capability
  monkeypatch.setattr(jax, 'local_devices', lambda: [device])
  assert chips.suited_dtype() == dtype
  assert tiny.config(dtype=None).dtype == dtype
  assert tiny.config(dtype=jnp.float32).dtype == jnp.float32
