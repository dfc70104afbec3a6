# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of verification: the identity of the paper, and its edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import verification


def acceptance_length(target_probs, draft_probs):
  """Return the share of [0, 1) that `acceptance` accepts, by bisection."""
  accepted = lambda uniforms: np.asarray(
      verification.acceptance(
          jnp.asarray(target_probs),
          jnp.asarray(draft_probs),
          jnp.asarray(uniforms),
      )
  )
  low = np.zeros_like(target_probs)
  high = np.ones_like(target_probs)
  never = ~accepted(low)
  always = accepted(np.nextafter(high, 0))
  for _ in range(60):
    middle = (low + high) / 2
    is_accepted = accepted(middle)
    low = np.where(is_accepted, middle, low)
    high = np.where(is_accepted, high, middle)
  return np.where(never, 0.0, np.where(always, 1.0, low))


def _dirichlet(seed, rows, vocab, concentration=0.5):
  rng = np.random.default_rng(seed)
  return rng.dirichlet(np.full(vocab, concentration), rows)


def _disjoint(seed, rows, vocab):
  is_targets = np.arange(vocab) % 2 == 0
  p, q = _dirichlet(seed, rows, vocab), _dirichlet(seed + 1, rows, vocab)
  p, q = np.where(is_targets, p, 0), np.where(is_targets, 0, q)
  return p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)


def _one_hot(seed, rows, vocab):
  return np.eye(vocab)[np.random.default_rng(seed).integers(0, vocab, rows)]


def _nearly_equal():
  p = _dirichlet(8, 40, 6)
  q = p * (1 + 1e-9 * np.random.default_rng(9).normal(size=p.shape))
  return p, q / q.sum(-1, keepdims=True)


DISTRIBUTIONS = {
    'random': (_dirichlet(0, 40, 7), _dirichlet(1, 40, 7)),
    'large vocabulary': (_dirichlet(2, 8, 500, 0.05), _dirichlet(3, 8, 500)),
    'two tokens': (_dirichlet(4, 40, 2), _dirichlet(5, 40, 2)),
    'equal': (_dirichlet(6, 40, 7),) * 2,
    'nearly equal': _nearly_equal(),
    'disjoint': _disjoint(10, 40, 7),
    'one-hot target': (_one_hot(12, 40, 5), _dirichlet(13, 40, 5)),
    'one-hot draft': (_dirichlet(14, 40, 5), _one_hot(15, 40, 5)),
    'both one-hot': (_one_hot(16, 40, 3), _one_hot(17, 40, 3)),
}


@pytest.mark.usefixtures('strict_types', 'float64')
@pytest.mark.parametrize('name', DISTRIBUTIONS)
def test_accepted_and_resampled_sum_to_the_target(name):
  """Tier 1: the identity of the paper."""
  p, q = DISTRIBUTIONS[name]
  accepted = q * acceptance_length(p, q)
  np.testing.assert_allclose(accepted, np.minimum(p, q), atol=1e-12)
  beta = accepted.sum(-1, keepdims=True)
  weights = np.asarray(verification.residual(jnp.asarray(p), jnp.asarray(q)))
  resampled = weights / weights.sum(-1, keepdims=True)
  np.testing.assert_allclose(accepted + (1 - beta) * resampled, p, atol=1e-12)


@pytest.mark.usefixtures('strict_types')
class TestAcceptance:

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.float64])
  def test_equal_probabilities_are_always_accepted(self, dtype):
    with jax.enable_x64(dtype == jnp.float64):
      rng = np.random.default_rng(20)
      probs = jnp.asarray(10 ** -rng.uniform(0, 30, 1000), dtype)
      for uniform in (0.0, 0.5, 1 - 2.0**-24):
        uniforms = jnp.full(probs.shape, uniform, jnp.float32)
        assert verification.acceptance(probs, probs, uniforms).all()

  def test_probability_zero_of_either_is_never_accepted(self):
    """Logits that are not finite have an argmax of no probability."""
    zeros, probs = jnp.zeros(3), jnp.array([0.5, 1.0, 0.0])
    assert not verification.acceptance(zeros, probs, zeros).any()
    assert not verification.acceptance(probs, zeros, zeros).any()

  def test_boundary_is_rejected(self):
    """The half-open interval gives exactly the probability p / q."""
    accepted = verification.acceptance(
        jnp.array([0.25, 0.25]),
        jnp.array([0.5, 0.5]),
        jnp.array([0.5, np.nextafter(np.float32(0.5), np.float32(0))]),
    )
    np.testing.assert_array_equal(accepted, [False, True])
