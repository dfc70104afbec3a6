# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of all layouts of two models that T5X trained (shared data)."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from tests import shared

FOLDER = shared.shared_folder()
ORACLE = FOLDER and FOLDER / 't5x_oracle'
pytestmark = pytest.mark.skipif(
    not (ORACLE and ORACLE.is_dir()), reason='needs the shared T5X oracle'
)
OTHERS = [('draft', 't5x_legacy'), ('draft', 'hf'), ('target', 'hf')]


def config_of(name):
  sizes = json.loads((ORACLE / name / 'oracle.json').read_text())['config']
  sizes['mlp_activations'] = tuple(sizes['mlp_activations'])
  return t5.T5Config(**sizes)


def restore(name, layout):
  expected = models.abstract_params(config_of(name))
  return checkpoints.open(ORACLE / name / layout).restore_params(expected)


@pytest.mark.parametrize('name, layout', OTHERS)
def test_parameters_equal_orbax(name, layout):
  jax.tree.map(
      np.testing.assert_array_equal,
      restore(name, layout),
      restore(name, 't5x_orbax'),
  )


@pytest.mark.parametrize('name, layout', OTHERS)
def test_logits(name, layout):
  """Teacher-forced logits are those of T5X."""
  with np.load(ORACLE / name / 'oracle.npz') as arrays:
    inputs = arrays['encoder_input_tokens'][:4]
    targets = arrays['decoder_target_tokens'][:4]
    expected = arrays['logits']
  apply = functools.partial(
      t5_modules.Transformer(config_of(name)).apply, enable_dropout=False
  )
  with jax.default_matmul_precision('highest'):
    logits = jax.jit(apply)(
        {'params': restore(name, layout)},
        inputs,
        jnp.pad(targets[:, :-1], ((0, 0), (1, 0))),
        targets,
    )
  is_target = targets > 0
  np.testing.assert_allclose(
      np.asarray(logits)[is_target], expected[is_target], atol=1e-4
  )


@pytest.mark.parametrize('name', ['draft', 'target'])
def test_specs_and_config(name):
  orbax = checkpoints.open(ORACLE / name / 't5x_orbax')
  hugging_face = checkpoints.open(ORACLE / name / 'hf')
  assert hugging_face.specs == orbax.specs
  for each in (orbax, hugging_face):
    assert each.network('float32') == config_of(name)


def test_step():
  assert checkpoints.open(ORACLE / 'draft' / 't5x_legacy').step == 1500
  assert checkpoints.open(ORACLE / 'draft' / 't5x_orbax').step == 1500
