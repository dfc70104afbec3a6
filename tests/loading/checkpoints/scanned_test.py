# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of scanned layers of T5X, which are split in loading."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from tests import checkpoints_by_hand as by_hand
from tests import tiny
from tests.loading.checkpoints import steps

# As scalable_t5 has it; all sizes differ.
CONFIG = tiny.config(
    num_encoder_layers=3, num_heads=4, head_dim=10, bias_per_layer=True
)
SHARED = dataclasses.replace(CONFIG, bias_per_layer=False)


def assert_holds(path, config):
  """In both ways to read it."""
  checkpoint = checkpoints.open(path)
  assert checkpoint.network() == config
  steps.assert_holds(path, tiny.params(config), config)
  found = checkpoints.nest(dict(checkpoint.read_params(jnp.float32)))
  jax.tree.map(np.testing.assert_array_equal, found, tiny.params(config))


def test_orbax(tmp_path):
  params = by_hand.scanned(CONFIG, tiny.params(CONFIG))
  kernel = params['decoder']['decoder']['self_attention']['out']['kernel']
  assert kernel.shape == (4, 2, 10, 32)
  checkpoints.save(tmp_path, 7, params)
  assert_holds(tmp_path, CONFIG)


@pytest.mark.parametrize(
    'axis, splits_heads, config',
    [(0, True, CONFIG), (1, False, SHARED), (0, False, SHARED)],
)
def test_older_layout(tmp_path, axis, splits_heads, config):
  params = by_hand.scanned(config, tiny.params(config), axis, splits_heads)
  by_hand.write_legacy(tmp_path, params)
  assert_holds(tmp_path, config)


def test_scalable_layers_that_are_not_scanned(tmp_path):
  params = tiny.params(CONFIG)
  for stack in ('encoder', 'decoder'):
    for name, layer in params[stack].items():
      if name.startswith('layers_'):
        params[stack][name] = by_hand.split_heads(CONFIG, layer)
  by_hand.write_legacy(tmp_path, params)
  assert_holds(tmp_path, CONFIG)


def test_a_pair(tmp_path):
  config = dataclasses.replace(SHARED, num_decoder_layers=1)
  of_role = {
      'target': by_hand.scanned(CONFIG, tiny.params(CONFIG)),
      'draft': tiny.params(config),
  }
  by_hand.write_legacy(tmp_path, of_role)
  checkpoint = checkpoints.open(tmp_path)
  assert checkpoint.of('target').network() == CONFIG
  assert checkpoint.of('draft').network() == config
  found = dict(checkpoint.of('target').read_params())
  expected = checkpoints.flatten(tiny.params(CONFIG))
  jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize('name', ['wo', 'wi_0'])
def test_unequal_numbers_of_layers(tmp_path, name):
  params = by_hand.scanned(CONFIG, tiny.params(CONFIG))
  mlp = params['encoder']['encoder']['mlp']
  mlp[name]['kernel'] = mlp[name]['kernel'][:, :2]
  by_hand.write_legacy(tmp_path, params)
  read = lambda path: checkpoints.open(path).network()
  steps.refuse(read, tmp_path, 'encoder/encoder/', 'axis of layers')
