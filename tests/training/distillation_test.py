# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distillation: the draft model learns what the target says."""

import jax
import numpy as np
import pytest

from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import cutting
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


def _draft(target_params, shares_encoder):
  network = cutting.take_layers(
      cutting.Network(_TARGET, target_params), encoder=[0], decoder=[0]
  )
  return cutting.without_encoder(network) if shares_encoder else network


@pytest.mark.parametrize('shares_encoder', [False, True])
def test_learns_the_target(target_params, shares_encoder):
  draft = _draft(target_params, shares_encoder)
  objective = distillation.Distillation(
      target_params,
      _TARGET,
      draft_kinds.Network(draft.config),
      divergences.forward_kl,
  )
  optimizer = adafactor.make(
      schedules.linear_decay(
          train_steps=150, learning_rate=0.03, warmup_steps=5
      )
  )
  run = steps.make_train_steps(optimizer, seed=0)
  indices = np.random.default_rng(1).integers(0, 256, (150, 32))
  state, metrics = run(
      objective,
      adafactor.start(optimizer, draft.params),
      jax.device_put(_examples()),
      indices.astype(np.int32),
  )
  per_token = np.asarray(metrics.loss_per_token)
  assert per_token[-10:].mean() < 0.5 * per_token[:3].mean()
  assert int(state.step) == 150


def test_loss_is_a_sum_over_tokens(target_params):
  draft = _draft(target_params, shares_encoder=False)
  objective = distillation.Distillation(
      target_params,
      _TARGET,
      draft_kinds.Network(draft.config),
      divergences.total_variation,
  )
  examples = _examples(4)
  key = jax.random.key(0)
  no_dropout = objective.replace(
      draft=draft_kinds.with_dropout(objective.draft, 0.0)
  )
  loss, metrics = no_dropout.loss(draft.params, examples, key)
  p, q = (
      jax.nn.softmax(x)
      for x in no_dropout.logits(draft.params, examples, enable_dropout=False)
  )
  is_token = examples.targets > 0
  expected = (np.abs(p - q).sum(-1) / 2)[is_token].sum()
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  assert metrics.num_tokens == is_token.sum()
  is_correct = q.argmax(-1) == examples.targets
  assert metrics.num_correct == is_correct[is_token].sum()
  assert no_dropout.divisor(metrics, 99) == is_token.sum()


def test_cross_entropy_does_not_run_the_target(target_params):
  """It needs tokens alone: such a step is as cheap as the draft's."""

  def operations(divergence):
    draft = _draft(target_params, shares_encoder=False)
    objective = distillation.Distillation(
        target_params, _TARGET, draft_kinds.Network(draft.config), divergence
    )
    loss = lambda params, target_params, examples: objective.replace(
        target_params=target_params
    ).loss(params, examples, jax.random.key(0))
    compiled = jax.jit(loss).lower(draft.params, target_params, _examples(4))
    return compiled.compile().cost_analysis()['flops']

  cheap = operations(divergences.cross_entropy)
  assert cheap < 0.6 * operations(divergences.forward_kl)


def test_no_gradient_reaches_the_target(target_params):
  draft = _draft(target_params, shares_encoder=True)
  objective = distillation.Distillation(
      target_params,
      _TARGET,
      draft_kinds.Network(draft.config),
      divergences.reverse_kl,
  )
  gradient = jax.grad(
      lambda objective: objective.loss(
          draft.params, _examples(4), jax.random.key(0)
      )[0]
  )(objective)
  decoder = gradient.target_params['decoder']
  assert not any(x.any() for x in jax.tree.leaves(decoder))
