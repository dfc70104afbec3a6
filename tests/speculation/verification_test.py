# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of verification: the identity of the paper, and forced outcomes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification


def acceptance_length(target_probs, draft_probs):
  """Returns the share of [0, 1) that `acceptance` accepts, by bisection."""
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
class TestIdentity:
  """Tier 1: accepted and resampled probabilities sum to p."""

  def test_accepted_and_resampled_sum_to_the_target(self, name):
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

  def test_probability_zero_is_never_accepted(self):
    zeros = jnp.zeros(3)
    draft_probs = jnp.array([0.5, 1.0, 0.0])
    assert not verification.acceptance(zeros, draft_probs, zeros).any()

  def test_draft_probability_zero_is_never_accepted(self):
    """Logits that are not finite have an argmax of no probability."""
    target_probs, zeros = jnp.array([0.5, 1.0]), jnp.zeros(2)
    assert not verification.acceptance(target_probs, zeros, zeros).any()

  def test_boundary_is_rejected(self):
    """The half-open interval gives exactly the probability p / q."""
    accepted = verification.acceptance(
        jnp.array([0.25, 0.25]),
        jnp.array([0.5, 0.5]),
        jnp.array([0.5, np.nextafter(np.float32(0.5), np.float32(0))]),
    )
    np.testing.assert_array_equal(accepted, [False, True])


@pytest.mark.usefixtures('strict_types')
class TestForced:
  """Tier 2: given uniforms and exact tokens."""

  def test_uniform_zero_does_not_accept_probability_zero(self):
    draft = contracts.Draft(
        jnp.array([[1, 1]]),
        jnp.array([2]),
        jnp.full((1, 2, 2), 0.5),
        jnp.zeros((1, 2), bool),
    )
    target_probs = jnp.array([[[1.0, 0.0]] * 3])
    verdict = verification.verify(target_probs, draft, jnp.zeros((1, 2)))
    assert verdict.num_accepted.tolist() == [0]
    assert verdict.next_weights.tolist() == [[0.5, 0.0]]

  def test_zero_for_an_impossible_point_mass(self):
    draft = contracts.Draft(
        jnp.array([[1]]),
        jnp.array([1]),
        jnp.full((1, 1, 2), jnp.nan),
        jnp.array([[True]]),
    )
    verdict = verification.verify(
        jnp.array([[[1.0, 0.0]] * 2]),
        draft,
        jnp.zeros((1, 1)),
    )
    assert verdict.num_accepted.tolist() == [0]
    assert verdict.next_weights.tolist() == [[1.0, 0.0]]

  def test_equal_distributions_accept_everything(self):
    probs = jnp.asarray(_dirichlet(30, 200, 9), jnp.float32)
    tokens = jnp.asarray(
        np.random.default_rng(31).integers(0, 9, (200, 1)), jnp.int32
    )
    draft = contracts.Draft(
        tokens,
        jnp.ones((200,), jnp.int32),
        probs[:, None],
        jnp.zeros((200, 1), bool),
    )
    target_probs = jnp.stack([probs, probs], axis=1)
    largest = jnp.full((200,), 1 - 2.0**-24, jnp.float32)
    verdict = verification.verify(target_probs, draft, largest[:, None])
    assert verdict.num_accepted.tolist() == [1] * 200

  def test_wrong_number_of_positions(self):
    draft = contracts.Draft(
        jnp.zeros((1, 2), jnp.int32),
        jnp.array([2]),
        jnp.full((1, 2, 2), 0.5),
        jnp.zeros((1, 2), bool),
    )
    with pytest.raises(ValueError, match=r'gamma \+ 1 = 3'):
      verification.verify(
          jnp.full((1, 2, 2), 0.5),
          draft,
          jnp.zeros((1, 2)),
      )


class TestTokenwise:

  def test_has_no_array_leaves(self):
    """The rule must not add inputs to a compiled program."""
    assert jax.tree.leaves(verification.TOKENWISE) == []
