# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of acceptance by teacher forcing, against enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from speculative_t5x.training import draft_kinds
from speculative_t5x.training import steps
from tests import tiny

_CONFIG = tiny.config(
    vocab_size=5, emb_dim=8, num_heads=1, head_dim=8, mlp_dim=16,
    num_encoder_layers=1, num_decoder_layers=1, dropout_rate=0.0,
)  # fmt: skip


class TestExpectedTokens:

  @pytest.mark.parametrize('gamma', [1, 2, 3])
  def test_mean_over_decodes_is_that_of_the_loop(self, gamma):
    """Over all decodes of a target whose tokens depend on those before."""
    rng = np.random.default_rng(gamma)
    vocab, length = 3, gamma + 1
    tables = {
        prefix: rng.dirichlet(np.ones(vocab), size=2)
        for size in range(length)
        for prefix in itertools.product(range(vocab), repeat=size)
    }
    # The probability that a draft is accepted up to a prefix is the product
    # of min(p, q) over its tokens.
    expected = 1.0
    for size in range(1, length):
      for tokens in itertools.product(range(vocab), repeat=size):
        each = [np.min(tables[tokens[:i]][:, tokens[i]]) for i in range(size)]
        expected += np.prod(each)
    mean = 0.0
    for tokens in itertools.product(range(vocab), repeat=length):
      p, q = np.array(
          [tables[tokens[:i]][:, tokens[i]] for i in range(length)]
      ).T
      reached = jnp.asarray(np.minimum(1, q / p))[None]
      is_token = jnp.ones((1, length), bool)
      found = draft_acceptance.expected_tokens(reached, is_token, (gamma,))
      mean += np.prod(p) * float(found[0, 0, 0])
    assert mean == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope='module')
def models():
  """Returns an objective whose target is random, and other parameters."""
  target, draft = (steps.init_params(_CONFIG, seed) for seed in (0, 1))
  grow = lambda params: jax.tree.map(lambda x: 3 * x, params)
  objective = distillation.Distillation(
      grow(target),
      _CONFIG,
      draft_kinds.Draft(_CONFIG),
      divergences.forward_kl,
  )
  return objective, grow(draft)


def _decodes():
  rng = np.random.default_rng(3)
  inputs, targets = rng.integers(2, 5, (2, 6, 4)).astype(np.int32)
  targets[:, 3] = [1, 1, 0, 1, 0, 1]
  targets[2, 2] = targets[4, 2] = 1
  return batches.Examples(inputs, targets)


class TestValidation:

  def test_the_target_itself_is_always_accepted(self, models):
    objective, _ = models
    decodes = batches.in_order(_decodes(), 4)
    validation = draft_acceptance.validation(
        objective, {0: decodes, 1: decodes}
    )
    found = validation(objective.target_params)
    for temperature in (0, 1):
      assert found[f'acceptance_t{temperature}'] == pytest.approx(1, abs=1e-6)
      assert found[f'divergence_t{temperature}'] == pytest.approx(0, abs=1e-6)
    # 4 of 6 decodes have 4 tokens, and 2 have 3: a call makes the rest.
    mean = (4 * (4 + 3 + 2 + 1) + 2 * (3 + 2 + 1)) / 22
    assert found['tokens_per_call_3_t0'] == pytest.approx(mean, abs=1e-5)
    assert validation.score(found) == pytest.approx(1, abs=1e-6)

  @pytest.fixture(scope='class')
  def measured(self, models):
    """Returns what is found of another draft model, and both distributions."""
    objective, params = models
    examples = _decodes()
    validation = draft_acceptance.validation(
        objective, {t: batches.in_order(examples, 4) for t in (0, 1)}
    )
    p, q = (
        np.asarray(jax.nn.softmax(x), np.float64)
        for x in objective.logits(params, examples)
    )
    return validation, validation(params), examples, p, q

  def test_another_draft_model(self, measured):
    """Acceptance by distributions that are computed one by one."""
    validation, found, examples, p, q = measured
    is_token = examples.targets > 0
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
        for start in np.flatnonzero(targets > 0):
          made.append(1.0)
          reached = 1.0
          for i in range(start, min(start + gamma, len(targets) - 1)):
            if not targets[i + 1]:
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
