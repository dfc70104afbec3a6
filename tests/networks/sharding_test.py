# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the placement of parameters on a mesh, from names and sizes alone.

The tests in `mesh` decode on devices.
"""

import dataclasses
import json
import pathlib

from flax.linen import partitioning
import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import sharding
from tests import tiny
from tests import tiny_decoders

_TREE = pathlib.Path(__file__).parent / 'golden/parameter_tree.json'


def abstract_mesh(data, model):
  return jax.sharding.AbstractMesh((data, model), ('data', 'model'))


def specs(mesh, rules=sharding.MODEL_PARALLEL, config=None, **overrides):
  """Return the mesh axes of each axis of each parameter, by name."""
  config = config or tiny.config(**overrides)
  shardings = models.param_shardings(config, mesh, rules)
  expected = jax.tree.structure(models.abstract_params(config))
  assert jax.tree.structure(shardings) == expected
  assert all(s.mesh == mesh for s in jax.tree.leaves(shardings))
  return {
      name: tuple(s.spec) for name, s in checkpoints.flatten(shardings).items()
  }


def test_rules_are_t5xs():
  """They cover every name that T5X's network gives to an axis."""
  tree = json.loads(_TREE.read_text())
  names = {name for leaf in tree.values() for name in leaf['axes']}
  rules = dict(sharding.MODEL_PARALLEL)
  assert names <= rules.keys()
  cut = {name for name in names if rules[name] == 'model'}
  assert cut == {'vocab', 'mlp', 'heads', 'joined_kv'}
  assert {rules[name] for name in names - cut} == {None}
  assert rules['batch'] == 'data'
  assert rules['kv'] is rules['length'] is None


class TestParamShardings:

  @pytest.mark.parametrize('model', [2, 4])
  def test_every_parameter(self, model):
    found = specs(abstract_mesh(2, model), num_heads=4, num_encoder_layers=1)
    tree = json.loads(_TREE.read_text())
    rules = dict(sharding.MODEL_PARALLEL)
    assert found.keys() == tree.keys()
    for name, spec in found.items():
      assert spec == tuple(rules[axis] for axis in tree[name]['axes']), name

  def test_indivisible_heads_are_replicated(self):
    """6 heads of width 16 have 96 columns, which 4 devices could divide."""
    found = specs(abstract_mesh(2, 4), num_heads=6)
    layer = 'decoder/layers_0/'
    for kernel in ('query', 'key', 'value', 'out'):
      name = f'{layer}self_attention/{kernel}/kernel'
      assert found[name] == (None, None)
    assert found['decoder/relpos_bias/rel_embedding'] == (None, None)
    assert found[f'{layer}mlp/wi_0/kernel'] == (None, 'model')
    assert found[f'{layer}mlp/wo/kernel'] == ('model', None)
    assert found['token_embedder/embedding'] == ('model', None)

  @pytest.mark.parametrize(
      ('of_decoder', 'of_encoder', 'model', 'is_cut'),
      [(2, 1, 2, False), (1, 3, 3, False), (2, 3, 2, False), (4, 2, 2, True),
       (2, 2, 4, False), (4, None, 4, True), (2, None, 4, False)],
  )  # fmt: skip
  def test_heads_of_keys(self, of_decoder, of_encoder, model, is_cut):
    """Those of both stacks stay whole, with the heads of queries they have."""
    config = tiny_decoders.CONFIGS['llama']
    if of_encoder is not None:
      config = tiny_decoders.T5GEMMA
      encoder = dataclasses.replace(
          config.encoder, num_heads=6, num_kv_heads=of_encoder
      )
      config = dataclasses.replace(config, encoder=encoder)
    config = dataclasses.replace(config, num_kv_heads=of_decoder)
    found = specs(abstract_mesh(1, model), config=config)
    kernels = [x for x in found if 'attention/' in x and 'kernel' in x]
    assert len(kernels) > 8
    assert {'model' in found[x] for x in kernels} == {is_cut}


def test_one_name_along_two_axes():
  """T5X's rules do so if slices are connected by a slower network."""
  mesh = jax.sharding.AbstractMesh((2, 4, 1), ('replica', 'data', 'model'))
  rules = (('batch', ('replica', 'data')),)
  spec = lambda rows: sharding.named_sharding(
      mesh, rules, ('batch', 'length'), (rows, 5)
  ).spec
  assert tuple(spec(16)) == (('replica', 'data'), None)
  assert tuple(spec(12)) == (None, None)


class TestMakeMesh:

  def test_one_device(self):
    mesh = sharding.make_mesh(1, 1)
    assert sharding.describe(mesh) == {'data': 1, 'model': 1}
    assert mesh.devices.item() == jax.devices()[0]
    assert sharding.describe(None) == {}

  def test_several_processes(self, monkeypatch):
    devices = jax.devices()
    monkeypatch.setattr(jax, 'process_count', lambda: 2)
    with pytest.raises(sharding.MeshError, match='JAX connects 2 processes'):
      sharding.make_mesh(1, 1)
    assert sharding.make_mesh(1, 1, devices).size == 1

  @pytest.mark.parametrize(
      ('shape', 'message'),
      [
          ((1000, 3), 'mesh of 1000 x 3 .* needs 3000 devices'),
          ((1, -2), 'model must be .* got -2'),
          (('two', 1), "data must be .* got 'two'"),
      ],
  )
  def test_sizes(self, shape, message):
    with pytest.raises(ValueError, match=message):
      sharding.make_mesh(*shape)


def test_batches_of_a_mesh():
  """A batch is divided along the data axis, or rounded up."""
  sharding.check_batch(None, 3)
  sharding.check_batch(abstract_mesh(1, 8), 3)
  sharding.check_batch(abstract_mesh(4, 2), 8)
  assert sharding.round_up(None, 3) == 3
  for size in range(5, 9):
    assert sharding.round_up(abstract_mesh(4, 2), size) == 8
  for size in (1, 6):
    with pytest.raises(sharding.MeshError, match='Choose a multiple of 4'):
      sharding.check_batch(abstract_mesh(4, 2), size)


class TestConstrain:

  def lowered(self, function=None):
    function = function or (lambda x: sharding.constrain(x, ('batch', 'heads')))
    return jax.jit(function).lower(jnp.zeros((8, 4))).as_text()

  def test_does_nothing_without_a_mesh(self):
    plain = self.lowered(lambda x: x)
    assert self.lowered() == plain
    with partitioning.axis_rules(sharding.MODEL_PARALLEL):
      assert self.lowered() == plain

  def test_in_scope(self):
    with sharding.scope(sharding.make_mesh(1, 1), sharding.MODEL_PARALLEL):
      assert '{"data"}, {"model"}' in self.lowered()
    assert 'sharding_constraint' not in self.lowered()
