# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distillation, its losses, and acceptance by teacher forcing."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import decoder_only
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from speculative_t5x.training import feature_distillation
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from tests import exhaustive
from tests import tiny
from tests import tiny_decoders

_ALONE = decoder_only.DecoderOnly(
    8, emb_dim=8, num_layers=1, num_heads=2, head_dim=4, mlp_dim=8
)
_TARGET = tiny.config(
    vocab_size=8,
    num_encoder_layers=1,
    dropout_rate=0.5,  # of its own training: distillation must not use it
)


def _examples(num_examples=256):
  rng = np.random.default_rng(0)
  inputs, targets = rng.integers(2, 8, (2, num_examples, 5)).astype(np.int32)
  targets[::2, 4] = -1
  return batches.TokenPairs(inputs, targets)


@pytest.fixture(scope='module')
def target_params():
  return tiny.params(_TARGET)


def _objective(target_params, shares_encoder, divergence):
  """Return the objective of the target's first layers, and these."""
  draft = _TARGET.first_layers(1)
  if shares_encoder:
    draft = draft.on_features(_TARGET.emb_dim)
  decoder = models.abstract_params(draft)['decoder']
  params = {name: target_params[name] for name in models.abstract_params(draft)}
  params['decoder'] = {name: params['decoder'][name] for name in decoder}
  return (
      distillation.Distillation(target_params, _TARGET, draft, divergence),
      params,
  )


@pytest.mark.parametrize(
    'shares_encoder', exhaustive.all_but([True], [False, True])
)
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
  draft = dataclasses.replace(objective.draft, dropout_rate=0.0)
  objective = objective.replace(draft=draft)
  examples = _examples(4)
  loss, metrics = objective.loss(params, examples, jax.random.key(0))
  p, q = map(jax.nn.softmax, objective.logits(params, examples))
  is_token = examples.targets >= 0
  expected = (np.abs(p - q).sum(-1) / 2)[is_token].sum()
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  assert metrics.num_tokens == is_token.sum()
  is_correct = q.argmax(-1) == examples.targets
  assert metrics.num_correct == is_correct[is_token].sum()


def _operations(objective, params):
  """Return the floating point operations of the gradient of a batch."""
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


_HEADS = {
    't5': (_TARGET, tiny.config(
        vocab_size=8, num_encoder_layers=0, num_decoder_layers=1, emb_dim=16,
        dropout_rate=0.0,
    )),
    'decoder alone': (_ALONE, dataclasses.replace(_ALONE, emb_dim=6)),
}  # fmt: skip


def _head_objective(name, **settings):
  """Return the objective of a random head on a target, and the head."""
  target, sizes = _HEADS[name]
  make = tiny.params if name == 't5' else tiny_decoders.params
  head = sizes.on_last_features(target)
  objective = feature_distillation.FeatureDistillation(
      make(target),
      target,
      head,
      divergences.forward_kl,
      **settings,
  )
  return objective, make(head)


@pytest.mark.parametrize('name', _HEADS)
def test_loss_of_a_head(name):
  """Of a pass with the target's features, and one with those predicted."""
  objective, params = _head_objective(name, feature_weight=0.3, num_passes=2)
  examples = _examples(4)
  loss, metrics = jax.jit(objective.loss)(params, examples, jax.random.key(0))
  inputs, outputs = examples.inputs, examples.targets
  features = None
  if name == 't5':
    features = objective.target.features(objective.target_params, inputs)
  target = objective.target.score_with_features(
      objective.target_params, inputs, outputs, features=features
  )
  fed, expected = target.all_features, 0.0
  is_token = examples.targets >= 0
  for _ in range(2):
    before = np.concatenate([np.zeros_like(fed[:, :1]), fed[:, :-1]], axis=1)
    scored = objective.draft.score_with_features(
        params, inputs, outputs, features=features, fed=before
    )
    log_p, log_q = (
        np.asarray(jax.nn.log_softmax(x.logits)) for x in (target, scored)
    )
    distance = np.abs(target.features - scored.features)
    of_features = np.where(distance < 1, distance**2 / 2, distance - 0.5)
    per_token = (np.exp(log_p) * (log_p - log_q)).sum(-1)
    per_token += 0.3 * of_features.mean(-1)
    expected += per_token[is_token].sum() / 2
    fed = scored.all_features
  np.testing.assert_allclose(loss, expected, rtol=1e-4)
  assert metrics.num_tokens == is_token.sum()
  # Of plain scoring too, and without features of a text's own position.
  plain = objective.target.score(objective.target_params, inputs, outputs)
  np.testing.assert_allclose(
      objective.logits(params, examples)[0][is_token],
      plain[is_token],
      atol=1e-4,
  )


_ALL = (
    divergences.forward_kl,
    divergences.reverse_kl,
    divergences.jensen_shannon,
    divergences.total_variation,
)
_P = (0.9, 0.1)
_Q = (0.5, 0.5)


def _logits(probs, shift=0.0):
  with np.errstate(divide='ignore'):
    return jnp.asarray(np.log(np.asarray(probs)) + shift)


class TestValues:

  @pytest.mark.parametrize(
      'divergence, expected',
      [
          (divergences.forward_kl, 0.9 * np.log(1.8) + 0.1 * np.log(0.2)),
          (divergences.reverse_kl, 0.5 * np.log(1 / 1.8) + 0.5 * np.log(5)),
          # The mean of both is (0.7, 0.3).
          (
              divergences.jensen_shannon,
              0.45 * np.log(9 / 7)
              + 0.05 * np.log(1 / 3)
              + 0.25 * np.log(5 / 7)
              + 0.25 * np.log(5 / 3),
          ),
          (divergences.total_variation, 0.4),
      ],
  )
  def test_by_hand(self, divergence, expected):
    found = divergence(_logits(_P, shift=3.0), _logits(_Q, shift=-2.0))
    np.testing.assert_allclose(found, expected, atol=1e-6)


class TestGradients:

  @pytest.mark.parametrize('divergence', _ALL)
  def test_finite_differences(self, divergence):
    with jax.enable_x64(True):
      rng = np.random.default_rng(2)
      p, q = jnp.asarray(rng.normal(size=(2, 5)))
      gradient = jax.grad(divergence, argnums=1)(p, q)
      step = 1e-6 * np.eye(5)
      differences = [
          (divergence(p, q + d) - divergence(p, q - d)) / 2e-6 for d in step
      ]
      np.testing.assert_allclose(gradient, differences, atol=1e-8)

  @pytest.mark.parametrize('divergence', [*_ALL, divergences.cross_entropy])
  def test_none_reaches_the_target(self, divergence):
    gradient = jax.grad(divergence)(_logits(_P), _logits(_Q), jnp.int32(1))
    assert not gradient.any()

  @pytest.mark.parametrize('divergence', _ALL)
  def test_finite_beside_tokens_that_cannot_occur(self, divergence):
    p, q = _logits((0.5, 0.5, 0.0)), _logits((0.2, 0.8, 0.0))
    without = divergence(p[:2], q[:2])
    value, gradient = jax.value_and_grad(divergence, argnums=1)(p, q)
    assert value == pytest.approx(float(without), abs=1e-6)
    assert np.isfinite(gradient).all() and gradient[2] == 0

  @pytest.mark.parametrize('bad', [np.nan, np.inf])
  @pytest.mark.parametrize('divergence', _ALL)
  def test_one_bad_logit_is_never_a_loss(self, divergence, bad):
    """Of the target's or the draft's logits, in any size of vocabulary."""
    for vocab in (3, 5000):
      good = jnp.linspace(-1.0, 1.0, vocab)
      broken = good.at[vocab // 2].set(bad)
      for pair in ((broken, good), (good, broken)):
        assert np.isnan(jax.jit(divergence)(*pair))


_CONFIG = tiny.config(
    vocab_size=5, emb_dim=8, num_heads=1, head_dim=8, mlp_dim=16,
    num_encoder_layers=1, num_decoder_layers=1, dropout_rate=0.0,
)  # fmt: skip


def _decodes():
  rng = np.random.default_rng(3)
  inputs, targets = rng.integers(2, 5, (2, 6, 6)).astype(np.int32)
  targets[:, 5] = [1, 1, -1, 1, -1, 1]
  targets[2, 4] = targets[4, 4] = 1
  return batches.TokenPairs(inputs, targets)


@pytest.fixture(scope='module')
def measured():
  """Return what is found of another draft model, and both distributions."""
  target, params = (tiny.params(_CONFIG, noise=noise) for noise in (0.0, 1.0))
  objective = distillation.Distillation(
      target, _CONFIG, _CONFIG, divergences.forward_kl
  )
  examples = _decodes()
  validation = draft_acceptance.validation(
      objective, {t: batches.in_order(examples, 4) for t in (0, 1)}
  )
  p, q = (
      np.asarray(jax.nn.softmax(x), np.float64)
      for x in objective.logits(params, examples)
  )
  return validation, validation(params), examples, p, q


class TestValidation:

  def test_another_draft_model(self, measured):
    """Acceptance by distributions that are computed one by one."""
    validation, found, examples, p, q = measured
    is_token = examples.targets >= 0
    agrees = p.argmax(-1) == q.argmax(-1)
    assert 0.1 < agrees[is_token].mean() < 0.9
    assert found['acceptance_t0'] == pytest.approx(agrees[is_token].mean())
    overlap = np.minimum(p, q).sum(-1)[is_token].mean()
    assert found['acceptance_t1'] == pytest.approx(overlap, abs=1e-5)
    kl = (p * np.log(p / q)).sum(-1)[is_token].mean()
    assert found['divergence_t1'] == pytest.approx(kl, abs=1e-4)
    assert found['acceptance_t0'] != pytest.approx(found['acceptance_t1'])
    score = (found['acceptance_t0'] + found['acceptance_t1']) / 2
    assert validation.score(found) == pytest.approx(score)

  @pytest.mark.parametrize('temperature', [0, 1])
  def test_tokens_per_call(self, measured, temperature):
    """The chain of acceptances from each token on, one by one."""
    _, found, examples, p, q = measured
    for gamma in draft_acceptance.GAMMAS:
      made = []
      for row, targets in enumerate(examples.targets):
        for start in np.flatnonzero(targets >= 0):
          made.append(1.0)
          reached = 1.0
          for i in range(start, min(start + gamma, len(targets) - 1)):
            if targets[i + 1] < 0:
              break
            if temperature:
              token = targets[i]
              reached *= min(1, q[row, i, token] / p[row, i, token])
            else:
              reached *= p[row, i].argmax() == q[row, i].argmax()
            made[-1] += reached
      name = f'tokens_per_call_{gamma}_t{temperature}'
      assert found[name] == pytest.approx(np.mean(made), abs=1e-5)
    assert 1 < np.mean(made) < 3.5
