# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures: checkpoints of two steps, to read and to damage."""

import shutil

import jax
import pytest

from speculative_t5x.loading import checkpoints
from tests import tiny
from tests.loading.checkpoints import steps


@pytest.fixture(scope='session')
def params():
  return tiny.params(steps.CONFIG)


@pytest.fixture(scope='session')
def folder(tmp_path_factory, params):
  """Return a folder of steps 9 and 10 with different parameters; read-only."""
  folder = tmp_path_factory.mktemp('model')
  checkpoints.save(folder, 9, params, steps.with_states(params))
  checkpoints.save(folder, 10, jax.tree.map(lambda x: -x, params))
  return folder


@pytest.fixture
def copied(folder, tmp_path):
  """Return a copy that a test may damage."""
  return shutil.copytree(folder, tmp_path / 'model')
