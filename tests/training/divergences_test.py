# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the losses of distillation against values computed by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import theory
from speculative_t5x.training import divergences

_ALL = (
    divergences.forward_kl,
    divergences.reverse_kl,
    divergences.jensen_shannon,
    divergences.total_variation,
)
_P = (0.5, 0.25, 0.25)
_Q = (0.25, 0.25, 0.5)


def _logits(probs, shift=0.0):
  with np.errstate(divide='ignore'):
    return jnp.asarray(np.log(np.asarray(probs)) + shift)


def test_cross_entropy():
  """Its mean over the target is the forward KL divergence and the entropy."""
  rng = np.random.default_rng(2)
  p, q = rng.dirichlet(np.ones(6), size=2)
  logits = [_logits(np.tile(x, (6, 1)), shift=4.0) for x in (p, q)]
  each = divergences.cross_entropy(*logits, jnp.arange(6))
  np.testing.assert_allclose(each, -np.log(q), atol=1e-6)
  kl = divergences.forward_kl(_logits(p), _logits(q))
  np.testing.assert_allclose(p @ -np.log(q / p), kl, atol=1e-6)


class TestValues:

  @pytest.mark.parametrize(
      'divergence, expected',
      [
          # 1/2 log 2 + 0 - 1/4 log 2
          (divergences.forward_kl, 0.25 * np.log(2)),
          (divergences.reverse_kl, 0.25 * np.log(2)),
          # m = (3/8, 1/4, 3/8): both halves are 1/2 log 4/3 + 1/4 log 2/3.
          (
              divergences.jensen_shannon,
              0.5 * np.log(4 / 3) + 0.25 * np.log(2 / 3),
          ),
          (divergences.total_variation, 0.25),
      ],
  )
  def test_by_hand(self, divergence, expected):
    found = divergence(_logits(_P, shift=3.0), _logits(_Q, shift=-2.0))
    np.testing.assert_allclose(found, expected, atol=1e-6)

  def test_directions_differ(self):
    p, q = _logits((0.9, 0.1)), _logits((0.5, 0.5))
    forward = 0.9 * np.log(1.8) + 0.1 * np.log(0.2)
    reverse = 0.5 * np.log(1 / 1.8) + 0.5 * np.log(5)
    found = divergences.forward_kl(p, q), divergences.reverse_kl(p, q)
    np.testing.assert_allclose(found, (forward, reverse), atol=1e-6)

  @pytest.mark.parametrize('divergence', _ALL)
  def test_zero_only_if_equal(self, divergence):
    rng = np.random.default_rng(0)
    p, q = rng.normal(size=(2, 20, 7)).astype(np.float32)
    assert divergence(p, p + 1.5) == pytest.approx(0, abs=1e-6)
    assert (divergence(p, q) > 1e-3).all()
    assert divergence(p, q).shape == (20,)
    halves = [x.astype(jnp.bfloat16) for x in (p, q)]
    assert divergence(*halves).dtype == jnp.float32

  def test_total_variation_is_rejection(self):
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(9), size=(2, 30))
    alpha = [
        theory.acceptance_probability(*pair) for pair in zip(p, q, strict=True)
    ]
    found = divergences.total_variation(_logits(p), _logits(q))
    np.testing.assert_allclose(found, 1 - np.asarray(alpha), atol=1e-6)

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
    gradient = jax.grad(divergence)(_logits(_P), _logits(_Q), jnp.int32(2))
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
