# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of checkpoints that hold a target and a draft model."""

import jax
import numpy as np
import pytest

from speculative_t5x.jobs import convert
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from tests import checkpoints_by_hand as by_hand
from tests import tiny

_CONFIGS = {
    'target': tiny.config(num_encoder_layers=1),
    'draft': tiny.config(num_encoder_layers=1, num_decoder_layers=1, mlp_dim=8),
}
_ROLES = pytest.mark.parametrize('role', _CONFIGS)


@pytest.fixture(scope='module')
def params():
  return {role: tiny.params(config) for role, config in _CONFIGS.items()}


@pytest.fixture(
    scope='module',
    params=[checkpoints.Layout.ORBAX, checkpoints.Layout.LEGACY],
    ids=lambda layout: layout.name,
)
def folder(request, tmp_path_factory, params):
  """Return a folder with a pair of step 7, in each layout of T5X."""
  folder = tmp_path_factory.mktemp('pair')
  if request.param is checkpoints.Layout.ORBAX:
    checkpoints.save(folder, 7, params, {'draft': params['draft']})
  else:
    by_hand.write_legacy(folder, params)
  return folder


def assert_equal(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


@_ROLES
class TestOf:

  def test_reads_the_model(self, folder, params, role):
    model = checkpoints.open(folder).of(role)
    assert model.network().mlp_dim == _CONFIGS[role].mlp_dim
    expected = models.abstract_params(_CONFIGS[role])
    assert_equal(model.restore_params(expected), params[role])
    one_by_one = checkpoints.nest(dict(model.read_params()))
    assert_equal(one_by_one, params[role])
    assert model.step == 7 and not model.is_pair
    assert model.of('target') is model
    (other,) = _CONFIGS.keys() - {role}
    with pytest.raises(checkpoints.CheckpointError, match='mlp/wi_0/kernel'):
      model.restore_params(models.abstract_params(_CONFIGS[other]))

  def test_one_model_is_itself(self, tmp_path, params, role):
    checkpoints.save(tmp_path, 3, params[role])
    checkpoint = checkpoints.open(tmp_path)
    assert checkpoint.of('target') is checkpoint
    assert checkpoint.of('draft') is checkpoint


def test_role_chooses_the_model(folder):
  for role in ('target', 'draft'):
    found = models.find_model(pairing.open_checkpoint(role, folder))
    assert found.config.mlp_dim == _CONFIGS[role].mlp_dim


def test_pair_where_one_model_is_needed(folder, tmp_path):
  for use in (
      lambda: models.load_model(folder),
      lambda: models.load_model(folder, _CONFIGS['draft']),
      lambda: convert.convert(checkpoint_path=folder, output_dir=tmp_path),
  ):
    with pytest.raises(
        checkpoints.CheckpointError, match='a target and a draft model'
    ):
      use()
