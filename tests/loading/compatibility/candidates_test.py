# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading two models without their weights."""

import shutil

import jax.numpy as jnp
import pytest

from speculative_t5x.loading.compatibility import candidates
from speculative_t5x.tasks import bulletins
from tests import tiny
from tests.loading.compatibility import saved_pair


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Returns a folder of two checkpoints; tests must not write to it."""
  folder = tmp_path_factory.mktemp('pair')
  saved_pair.save(folder)
  return folder


@pytest.fixture
def read(folder):
  """Returns a function that reads the tiny pair, with changes per model."""

  def read(target=None, draft=None, **options):
    given = (
        {'checkpoint_path': str(folder / 'target'), **(target or {})},
        {'checkpoint_path': str(folder / 'draft'), **(draft or {})},
    )
    return candidates.read_pair(
        *(candidates.Given(**each) for each in given), **options
    )

  return read


def _problem(candidate):
  (problem,) = candidate.problems
  return problem


class TestModels:

  def test_sizes_come_from_the_parameters(self, read, folder):
    target, draft = read()
    assert target.config == saved_pair.TARGET
    assert draft.config == saved_pair.DRAFT
    for candidate, name in ((target, 'target'), (draft, 'draft')):
      assert candidate.path == str(folder / name)
      assert candidate.config_source == candidates.FROM_PARAMETERS
      assert candidate.model.checkpoint.specs and not candidate.problems

  def test_given_config(self, read):
    config = tiny.config(vocab_size=2048, dtype='float32')
    target, draft = read(target={'config': config}, dtype='bfloat16')
    assert target.config_source == 'TARGET_CONFIG'
    assert draft.config_source == candidates.FROM_PARAMETERS
    assert jnp.dtype(target.config.dtype) == jnp.float32
    assert jnp.dtype(draft.config.dtype) == jnp.bfloat16


class TestVocabularies:

  GIVEN = {'vocabulary': bulletins.VOCABULARY_FILE}

  def test_given(self, read):
    target, draft = read(target=self.GIVEN, draft=self.GIVEN)
    assert target.vocabulary.num_ids == draft.vocabulary.num_ids == 2048
    assert not draft.is_assumed
    target, draft = read(target=self.GIVEN)
    assert not target.is_assumed and draft.is_assumed
    assert draft.vocabulary is target.vocabulary

  @pytest.mark.parametrize('role', ['target', 'draft'])
  def test_beside_the_weights(self, folder, tmp_path, read, role):
    """The folder has a spiece.model, as Hugging Face's library writes it."""
    copy = tmp_path / role
    shutil.copytree(folder / role, copy)
    shutil.copy(bulletins.VOCABULARY_FILE, copy / 'spiece.model')
    given = {role: {'checkpoint_path': str(copy)}}
    found = dict(zip(('target', 'draft'), read(**given), strict=True))
    assert found[role].vocabulary.num_ids == 2048
    assert not found[role].is_assumed
    (copy / 'spiece.model').write_bytes(b'nothing')
    found = dict(zip(('target', 'draft'), read(**given), strict=True))
    assert 'spiece.model cannot be read' in _problem(found[role])

  def test_missing_file(self, read, tmp_path):
    path = tmp_path / 'no.model'
    target, draft = read(target={'vocabulary': str(path)})
    assert f'There is no vocabulary at {path}' in _problem(target)
    assert draft.vocabulary is None and not draft.problems
