# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks that checkpoints hold the networks of a pair."""

import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from tests import tiny
from tests.loading.compatibility import saved_pair


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Returns a folder of two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  saved_pair.save(folder)
  return folder


def _check(
    folder,
    target='target',
    draft='draft',
    target_config=saved_pair.TARGET,
    draft_config=saved_pair.DRAFT,
):
  found = [
      models.find_model(pairing.open_checkpoint(name, folder / path), config)
      for name, path, config in (
          (pairing.TARGET_PATH, target, target_config),
          (pairing.DRAFT_PATH, draft, draft_config),
      )
  ]
  pairing.check_networks(*found)


def test_matching_networks_pass(folder):
  _check(folder)


def test_missing_checkpoint_names_the_macro(folder):
  with pytest.raises(
      checkpoints.CheckpointError, match='^The draft .DRAFT_CHECKPOINT_PATH'
  ):
    _check(folder, draft='no')


def test_swapped_configs(folder):
  with pytest.raises(checkpoints.CheckpointError, match='look swapped'):
    _check(
        folder, target_config=saved_pair.DRAFT, draft_config=saved_pair.TARGET
    )


def test_one_checkpoint_for_both(folder):
  with pytest.raises(
      checkpoints.CheckpointError, match=r'It fits DRAFT_CONFIG\.$'
  ) as error:
    _check(folder, target='draft')
  assert 'is of another network' in str(error.value)
  assert 'swapped' not in str(error.value)


def test_network_of_neither(folder):
  other = tiny.config(vocab_size=2048, mlp_dim=8)
  with pytest.raises(checkpoints.CheckpointError) as error:
    _check(folder, target_config=other)
  message = str(error.value)
  assert message.startswith('The target (CHECKPOINT_PATH): ')
  assert 'It fits' not in message
