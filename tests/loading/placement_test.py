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
from speculative_t5x.research.simulation import t5_published
from tests import tiny

_GIB = 2**30
_CHECKPOINT = types.SimpleNamespace(source='a target')
_BATCHES = placement.Batches(
    None, num_decodes=1, inputs_length=16, targets_length=16, gamma=3
)
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

  def place(machine, mesh_shape=None, *, target=None, drafters=(), **changes):
    monkeypatch.setattr(placement, 'this_machine', lambda: machine)
    monkeypatch.setattr(sharding, 'from_shape', from_shape)
    placed = placement.place(
        target or _source(),
        lambda target: [each(target) for each in drafters],
        dataclasses.replace(_BATCHES, **changes),
        mesh_shape,
    )
    mesh = placed.target.mesh
    shape = tuple(mesh.shape.values()) if mesh else (1, 1)
    return shape, placed.batch_size, placed.line

  return place


def _needed(
    batch_size, mesh_shape, config=None, drafters=(), platform='tpu', **changes
):
  needs = dataclasses.replace(_BATCHES, **changes).needs
  target = _source(config).config
  return needs(target, drafters, platform)(batch_size, mesh_shape)


def _holding(num_bytes, **changes):
  """Return a machine that this number of bytes fills to the full."""
  return dataclasses.replace(_V4, free_bytes=num_bytes, **changes)


class TestChoice:

  @pytest.mark.parametrize(
      ('sizes', 'count', 'shape', 'batch_size'),
      [
          (None, 1, (1, 1), 8),
          (None, 4, (4, 1), 32),
          ([32], 4, (4, 1), 32),
          ([1], 4, (1, 1), 1),
          ([6], 4, (2, 1), 6),
          ([8, 4], 8, (4, 1), 8),
      ],
  )
  def test_all_devices_that_divide_the_batch(
      self, place, sizes, count, shape, batch_size
  ):
    machine = dataclasses.replace(_V4, count=count)
    found = place(machine, sizes=sizes)
    assert found[:2] == (shape, batch_size)
    assert f'mesh_shape={shape}' in found[2] and 'bfloat16' in found[2]

  def test_cpu(self, place):
    """One example per device, and the copies of narrow weights count."""
    machine = placement.Machine('cpu', 'cpu', 1, _GIB)
    assert place(machine)[:2] == ((1, 1), 1)
    wide, narrow = tiny.config(), tiny.config(dtype='bfloat16')
    count = models.count_params(wide)
    both = [_needed(1, (1, 1), each, platform='cpu') for each in (wide, narrow)]
    assert both[1] > both[0] + count  # 2 and 4 bytes each, in place of 4

  def test_as_few_model_partitions_as_hold_the_weights(self, place):
    config = tiny.config(dtype='bfloat16', num_heads=4, head_dim=8)
    for shape in ((2, 2), (1, 4)):
      machine = _holding(_needed(2, shape, config) / 0.9)
      found, _, line = place(machine, sizes=[2], target=_source(config))
      assert found == shape
      assert f'the weights need {shape[1]} devices' in line

  def test_batch_that_fits_beside_the_weights(self, place):
    """It is halved before the target is partitioned."""
    machine = _holding(_needed(4 * 2, (4, 1)) / 0.9)
    assert place(machine)[:2] == ((4, 1), 8)

  def test_room_is_left_where_there_is_some(self, place):
    exact = _needed(1, (1, 1))
    assert place(_holding(exact, count=1), sizes=[1])[0] == (1, 1)
    assert place(_holding(exact, count=2), sizes=[1])[0] == (1, 2)

  def test_unknown_memory(self, place, monkeypatch):
    monkeypatch.setattr(placement.memory, 'available_bytes', lambda: math.inf)
    machine = placement.this_machine()
    shape, _, line = place(machine)
    assert shape[1] == 1 and 'do not report' in line

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
    wide = _source(tiny.config(num_decoder_layers=4))
    parallel = [_found(_source())]
    replicated = [_found(_source(rules=sharding.REPLICATED))]
    sizes = [
        _needed(8, (1, 2), drafters=each)
        for each in (parallel, replicated, replicated * 2, replicated * 3)
    ]
    assert sizes[0] < sizes[1] < sizes[2] == sizes[3]
    assert _needed(8, (1, 2), drafters=[_found(wide)]) > sizes[0]
    more = _needed(8, (1, 2), drafters=[_found(_source(), num_bytes=7)])
    assert more == sizes[0] + 7
    assert _needed(8, (1, 2), drafters=[drafting.Drafting()]) < sizes[0]

  def test_batches_beside(self):
    more = _needed(2, (2, 1), beside=8) - _needed(16, (2, 1))
    # 16 tokens in place of a block of 4: 8 rows, 64 logits.
    assert more == 4 * 8 * 64 * (16 - 4)

  def test_paper_on_one_chip(self, place, monkeypatch):
    """XXL and T5-small fit a v4 at batch 1, and need four chips of a v5e.

    The 24 layers of XXL, which are traced one by one, are four as large.
    """
    own = t5_published.SIZES['xxl'] | {'num_layers': 4, 'mlp_dim': 102_400}
    monkeypatch.setitem(t5_published.SIZES, 'xxl', own)
    xxl, small = (
        _source(t5_published.make_config(size, 'bfloat16'))
        for size in ('xxl', 'small')
    )
    of = lambda name: dataclasses.replace(
        _V4, free_bytes=0.96 * chips.CHIPS[name].memory_bytes
    )
    options = {'target': xxl, 'drafters': [lambda _: _found(small)]}
    lengths = {'inputs_length': 512, 'targets_length': 128, 'sizes': [1]}
    assert place(of('v4'), **options, **lengths)[0] == (1, 1)
    assert place(of('v5e'), **options, **lengths)[0] == (1, 2)
    with pytest.raises(placement.DoesNotFitError) as error:
      place(of('v5e'), (1, 1), **options, **lengths)
    assert 'a target in bfloat16 needs ' in str(error.value)


class TestRefusal:

  @pytest.mark.parametrize(
      ('machine', 'given', 'sizes', 'smallest'),
      [
          (_V4, (1, 1), [8], ((1, 1), 8)),
          (_V4, None, None, ((1, 4), 1)),
          (dataclasses.replace(_V4, count=1), None, [512], ((1, 1), 512)),
          # Simulated devices share a memory.
          (placement.Machine('cpu', 'cpu', 2, 10), None, None, ((1, 2), 1)),
      ],
  )
  def test_has_the_numbers(self, place, machine, given, sizes, smallest):
    shape, batch_size = smallest
    needed = _needed(batch_size, shape, platform=machine.platform)
    machine = dataclasses.replace(machine, free_bytes=10)
    with pytest.raises(placement.DoesNotFitError) as error:
      place(machine, given, sizes=sizes)
    (message,) = str(error.value).splitlines()
    for number in (
        memory.text(needed),
        memory.text(needed - 10),
        f'{machine}',
        f'mesh_shape={shape}',
        f'batch_size={batch_size}',
    ):
      assert number in message

  def test_last_byte(self, place):
    exact = _needed(8, (1, 1))
    assert place(_holding(exact), (1, 1), sizes=[8])[0] == (1, 1)
    with pytest.raises(placement.DoesNotFitError):
      place(_holding(exact - 1), (1, 1), sizes=[8])


class TestTraining:

  def test_mesh(self, monkeypatch, capsys):
    networks = [tiny.config()] * 2
    held = 8 * models.count_params(tiny.config())
    for num_examples, machine, shape in (
        (1, _V4, {}),
        (1, _holding(0.9 * held, count=1), None),
        (1, _holding(held / 0.9, count=1), {}),
    ):
      monkeypatch.setattr(placement, 'this_machine', lambda x=machine: x)
      if shape is None:
        with pytest.raises(placement.DoesNotFitError, match='missing'):
          placement.place_training(networks, num_examples, None)
        continue
      mesh = placement.place_training(networks, num_examples, None)
      assert sharding.describe(mesh) == shape
      assert 'mesh_shape=(1, 1)' in capsys.readouterr().err

  def test_given_mesh_must_divide_the_batch(self, monkeypatch):
    assert placement.place_training([tiny.config()], 3, (1, 1)) is None
    with pytest.raises(sharding.MeshError, match='Choose a smaller'):
      placement.place_training([tiny.config()], 3, (2, 1))
    mesh = sharding.make_abstract_mesh(2, 1)
    monkeypatch.setattr(sharding, 'from_shape', lambda shape: mesh)
    with pytest.raises(sharding.MeshError, match='batch_size 3 cannot be'):
      placement.place_training([tiny.config()], 3, (2, 1))


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
