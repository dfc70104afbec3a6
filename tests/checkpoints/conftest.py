# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of two steps, for tests to read and to damage."""

import shutil

import jax
import pytest

from speculative_t5x import checkpoints
from tests import tiny
from tests.checkpoints import steps


@pytest.fixture(scope='session')
def params():
  return tiny.params(steps.CONFIG)


@pytest.fixture(scope='session')
def folder(tmp_path_factory, params):
  """Steps 9 and 10, whose parameters differ; not to be written to."""
  folder = tmp_path_factory.mktemp('model')
  checkpoints.save(folder, 9, params, steps.with_states(params))
  checkpoints.save(folder, 10, jax.tree.map(lambda x: -x, params))
  return folder


@pytest.fixture
def copied(folder, tmp_path):
  """A copy that a test may damage."""
  return shutil.copytree(folder, tmp_path / 'model')
