# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distillation: the draft model learns what the target says."""

import jax
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_kinds
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from tests import tiny

_TARGET = tiny.config(
    vocab_size=8,
    num_encoder_layers=1,
    dropout_rate=0.5,  # of its own training: distillation must not use it
)


def _examples(num_examples=256):
  rng = np.random.default_rng(0)
  inputs, targets = rng.integers(2, 8, (2, num_examples, 5)).astype(np.int32)
  targets[::2, 4] = 0
  return batches.Examples(inputs, targets)


@pytest.fixture(scope='module')
def target_params():
  params = steps.init_params(_TARGET, 0)
  return jax.tree.map(lambda x: 2 * x, params)


def _objective(target_params, shares_encoder, divergence):
  """Returns the objective of the target's first layers, and these."""
  draft = _TARGET.first_layers(1)
  if shares_encoder:
    draft = draft.on_features(_TARGET.emb_dim)
  decoder = models.abstract_params(draft)['decoder']
  params = {
      name: target_params[name] for name in models.abstract_params(draft)
  }
  params['decoder'] = {name: params['decoder'][name] for name in decoder}
  draft = draft_kinds.Draft(draft)
  return (
      distillation.Distillation(target_params, _TARGET, draft, divergence),
      params,
  )


@pytest.mark.parametrize('shares_encoder', [False, True])
def test_learns_the_target(target_params, shares_encoder):
  objective, params = _objective(
      target_params, shares_encoder, divergences.forward_kl
  )
  optimizer = adafactor.make(
      schedules.linear_decay(
          train_steps=150, learning_rate=0.03, warmup_steps=5
      )
  )
  run = steps.make_train_steps(seed=0)
  indices = np.random.default_rng(1).integers(0, 256, (150, 32))
  state, metrics = run(
      objective,
      adafactor.start(optimizer, params),
      jax.device_put(_examples()),
      indices.astype(np.int32),
  )
  per_token = np.asarray(metrics.loss / metrics.num_tokens)
  assert per_token[-10:].mean() < 0.5 * per_token[:3].mean()
  assert int(state.step) == 150


def test_loss_is_a_sum_over_tokens(target_params):
  objective, params = _objective(
      target_params, False, divergences.total_variation
  )
  objective = objective.replace(
      draft=objective.draft.with_dropout(0.0)
  )
  examples = _examples(4)
  loss, metrics = objective.loss(params, examples, jax.random.key(0))
  p, q = map(jax.nn.softmax, objective.logits(params, examples))
  is_token = examples.targets > 0
  expected = (np.abs(p - q).sum(-1) / 2)[is_token].sum()
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  assert metrics.num_tokens == is_token.sum()
  is_correct = q.argmax(-1) == examples.targets
  assert metrics.num_correct == is_correct[is_token].sum()
  assert objective.divisor(metrics, 99) == is_token.sum()


def _operations(objective, params):
  """Returns the floating point operations of the gradient of a batch."""
  gradient = lambda objective, params: jax.grad(
      lambda x: objective.loss(x, _examples(4), jax.random.key(0))[0]
  )(params)
  compiled = jax.jit(gradient).lower(objective, params).compile()
  return compiled.cost_analysis()['flops']


def test_cross_entropy_does_not_run_the_target(target_params):
  """It needs tokens alone: such a step is as cheap as the draft's."""
  cheap, other = (
      _operations(*_objective(target_params, False, divergence))
      for divergence in (divergences.cross_entropy, divergences.forward_kl)
  )
  assert cheap < 0.7 * other


def test_exit_head_costs_no_second_pass_of_the_target(target_params):
  """Its layers are the target's, which the target's own logits need as well."""
  config = _TARGET.first_layers(1).with_own_head()
  draft = draft_kinds.ExitHead(config).with_dropout(0.0)
  objective, _ = _objective(target_params, True, divergences.forward_kl)
  head = _TARGET.take_head(target_params)
  found = _operations(objective.replace(draft=draft), head)
  alone = jax.jit(_TARGET.score).lower(
      target_params, *_examples(4).as_read()
  )
  target = alone.compile().cost_analysis()['flops']
  assert found < 1.5 * target


def test_no_gradient_reaches_the_target(target_params):
  objective, params = _objective(target_params, True, divergences.reverse_kl)
  gradient = jax.grad(
      lambda objective: objective.loss(
          params, _examples(4), jax.random.key(0)
      )[0]
  )(objective)
  decoder = gradient.target_params['decoder']
  assert not any(x.any() for x in jax.tree.leaves(decoder))
