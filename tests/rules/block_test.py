# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of block verification: what it gains, and planted faults."""

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import testing
from speculative_t5x.rules import block
from speculative_t5x.speculation import verification

BLOCK = block.BlockVerification()


def gains(gamma, count=200, **settings):
  """Returns how many more draft tokens are accepted than token by token."""
  tables = [
      testing.random_tables(seed, gamma=gamma, vocab_size=3, **settings)
      for seed in range(count)
  ]
  one, other = (
      np.array(list(map(testing.mean_accepted, testing.emissions(x, tables))))
      for x in (BLOCK, verification.TOKENWISE)
  )
  return one - other


class TestAcceptedTokens:

  @pytest.mark.parametrize('kind', testing.KINDS)
  def test_never_fewer(self, kind):
    assert np.min(gains(2, kind=kind)) > -1e-12

  def test_more_at_two_draft_tokens_and_temperature_1(self):
    found = gains(2)
    print(f'{np.mean(found):.3f} more on average, {np.sum(found > 1e-6)} pairs')
    assert np.mean(found > 1e-6) > 0.8

  def test_as_many_at_one_draft_token(self):
    np.testing.assert_allclose(gains(1), 0, atol=1e-12)

  def test_as_many_at_temperature_0(self):
    np.testing.assert_allclose(gains(2, temperature=0.0), 0, atol=1e-12)


def _residual_of_tokenwise(original):
  def next_weights(target_probs, draft, num_accepted, target_scale=None):
    return original(target_probs, draft, num_accepted)

  return next_weights


def _without_residual_mass(original):
  """A prefix passes with probability w."""

  def longest(weights, masses, *others):
    return original(weights, weights, *others)

  return longest


def _stops_at_the_first_failure(original):
  def longest(weights, masses, lengths, uniforms):
    gamma = weights.shape[1]
    passes = [
        original(
            weights[:, i : i + 1],
            masses[:, i : i + 1],
            # The whole draft is the first of one token, and no other is.
            jnp.where(lengths == i + 1, 1, 2 * (lengths > i)),
            uniforms[:, i : i + 1],
        )
        for i in range(gamma)
    ]
    passed = jnp.stack(passes, axis=1) > 0
    return jnp.sum(jnp.cumprod(passed, axis=1), axis=1)

  return longest


def _whole_is_gamma(original):
  """Drafts are taken for gamma tokens, with no mass behind shorter ones."""

  def longest(weights, masses, lengths, uniforms):
    count = jnp.arange(1, weights.shape[1] + 1)
    masses = jnp.where(count < lengths[:, None], masses, 0)
    found = original(
        weights, masses, jnp.full_like(lengths, weights.shape[1]), uniforms
    )
    return jnp.minimum(found, lengths)

  return longest


def _unbounded_weights(original):
  """Weights are products of p / q, bounded only at the end."""

  def weights(target_probs, draft):
    p = verification.target_token_probs(target_probs, draft)
    q = verification.draft_token_probs(draft, p.dtype)
    products = jnp.cumprod(p / q, axis=1)
    return jnp.pad(
        jnp.minimum(products, 1), ((0, 0), (1, 0)), constant_values=1
    )

  return weights


MUTANTS = {
    'residual of the paper': (
        verification, 'next_weights', _residual_of_tokenwise, 'sampled',
    ),
    'without the residual mass': (
        block, '_longest_prefix', _without_residual_mass, 'sampled',
    ),
    'stops at the first failure': (
        block, '_longest_prefix', _stops_at_the_first_failure, 'sampled',
    ),
    'short drafts end at gamma': (
        block, '_longest_prefix', _whole_is_gamma, 'short',
    ),
    'unbounded weights': (
        block, '_prefix_weights', _unbounded_weights, 'sampled',
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', MUTANTS)
def test_mutants_fail(name, monkeypatch):
  module, attribute, mutate, kind = MUTANTS[name]
  tables = [
      testing.random_tables(seed, gamma=3, vocab_size=3, kind=kind)
      for seed in range(4)
  ]
  assert max(testing.distances(BLOCK, tables)) < 1e-12
  monkeypatch.setattr(module, attribute, mutate(getattr(module, attribute)))
  distance = max(testing.distances(BLOCK, tables))
  print(f'{name}: total variation {distance:.3f}')
  assert distance > 1e-3
