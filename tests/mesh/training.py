# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training on meshes ends with the parameters of training on one device."""

import jax
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from speculative_t5x.training import on_policy
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from speculative_t5x.training import trainer
from tests import exhaustive
from tests import tiny

_TARGET = tiny.config(
    vocab_size=16, emb_dim=16, num_heads=4, num_encoder_layers=1, head_dim=8,
    mlp_dim=32, dropout_rate=0.0,
)  # fmt: skip


def _examples():
  rng = np.random.default_rng(0)
  inputs, targets = rng.integers(2, 16, (2, 64, 6)).astype(np.int32)
  return batches.TokenPairs(inputs, targets)


def _train(folder, mesh, num_parts=1, exit_layer=None):
  """Distil for three steps, and return the result.

  What is trained is a network of its own, or a head behind a layer of the
  target.
  """
  draft, init = _TARGET, steps.init_params(_TARGET, 1)
  if exit_layer is not None:
    draft = _TARGET.first_layers(exit_layer).with_own_head()
    init = draft.take_head(init)
  target = steps.init_params(_TARGET, 0)
  if mesh is not None:
    target = jax.device_put(target, models.param_shardings(_TARGET, mesh))
  objective = distillation.Distillation(
      target, _TARGET, draft, divergences.forward_kl, exit_layer
  )
  samples = on_policy.Samples(
      objective,
      on_policy.Settings(share=0.5, period=3),
      t5.SPECIAL_IDS,
      batch_size=16,
      seed=0,
  )
  decodes = batches.in_order(_examples(), 16)
  return trainer.train(
      objective,
      draft_acceptance.validation(objective, {0: decodes, 1: decodes}),
      _examples(),
      schedules.linear_decay(
          train_steps=3, learning_rate=0.03, warmup_steps=1, decay_steps=0
      ),
      trainer.Settings(
          train_steps=3,
          batch_size=16,
          num_parts=num_parts,
          steps_per_call=3,
          checkpoint_period=3,
      ),
      folder,
      init=lambda: init,
      samples=samples,
      mesh=mesh,
  )


@pytest.mark.parametrize('exit_layer', exhaustive.all_but([1], [None, 1]))
def test_training_on_a_mesh(tmp_path, exit_layer):
  """A batch is computed in two parts."""
  shapes = models.abstract_params(_TARGET)
  if exit_layer is not None:
    shapes = _TARGET.first_layers(exit_layer).with_own_head().take_head(shapes)
  folders = tmp_path / 'alone', tmp_path / 'mesh'
  for folder in folders:
    folder.mkdir()
  mesh = sharding.from_shape((2, 4))
  expected = _train(folders[0], None, exit_layer=exit_layer)
  found = _train(folders[1], mesh, num_parts=2, exit_layer=exit_layer)
  assert found.last.training['loss'] == pytest.approx(
      expected.last.training['loss'], rel=1e-5
  )
  assert found.last.validation == pytest.approx(
      expected.last.validation, rel=1e-3
  )
  jax.tree.map(
      lambda one, other: np.testing.assert_allclose(one, other, atol=1e-4),
      *(checkpoints.open(each).restore_params(shapes) for each in folders),
  )


def test_parameters_are_partitioned():
  mesh = sharding.from_shape((2, 4))
  params = steps.init_params(_TARGET, 0)
  state = steps.place(
      adafactor.start(adafactor.make(lambda _: 0.1), params),
      cross_entropy.CrossEntropy(_TARGET),
      mesh,
  )
  kernel = state.params['decoder']['layers_0']['mlp']['wi_0']['kernel']
  assert kernel.sharding.shard_shape(kernel.shape) == (16, 8)
