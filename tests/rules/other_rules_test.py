# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what each rule promises."""

import collections

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import testing
from speculative_t5x.rules import block
from speculative_t5x.rules import exact_match
from speculative_t5x.rules import lenience
from speculative_t5x.rules import rejection_sampling
from speculative_t5x.rules import typical_acceptance
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from speculative_t5x.testing import table_pairs


def tables_of(gamma, count=40, vocab_size=4, **settings):
  return [
      testing.random_tables(
          seed, gamma=gamma, vocab_size=vocab_size, **settings
      )
      for seed in range(count)
  ]


def accepted(rule, tables):
  """Return the expected number of accepted draft tokens, per table."""
  mean = lambda emitted: sum(p * (len(x) - 1) for x, p in emitted.items())
  return np.array(list(map(mean, testing.emissions(rule, tables))))


def first(tables):
  """Return p and q of the first token, [tables, vocab]."""
  p = np.array([each.target_probs[0] for each in tables])
  return p, np.array([each.draft_probs[0] for each in tables])


def conditionals(joint):
  """Yield each prefix and token with its probability given the prefix."""
  mass = collections.defaultdict(float)
  for tokens, weight in joint.items():
    for count in range(len(tokens) + 1):
      mass[tokens[:count]] += weight
  for tokens, weight in mass.items():
    if tokens:
      yield tokens[:-1], tokens[-1], weight / mass[tokens[:-1]]


class TestLenience:

  @pytest.mark.parametrize('kind', table_pairs.KINDS)
  @pytest.mark.parametrize('factor', [0.9, 0.5, 0.1])
  def test_no_token_exceeds_its_bound(self, factor, kind):
    tables = tables_of(2, count=12, kind=kind)
    largest = 0.0
    emitted = testing.emissions(lenience.make_rule(factor), tables)
    for each, own in zip(tables, emitted):
      joint = each.continued(own)
      for prefix, token, probability in conditionals(joint):
        p = each.target_probs[len(prefix)][prefix][token]
        assert probability <= p / factor + 1e-6
        largest = max(largest, probability / p) if p else largest
    assert largest > 1.05  # the bound is needed

  @pytest.mark.parametrize('factor', [1.0, 0.5, 0.1])
  def test_acceptance_probability(self, factor):
    tables = tables_of(1)
    p, q = first(tables)
    expected = np.sum(np.minimum(p / factor, q), axis=1)
    np.testing.assert_allclose(
        accepted(lenience.make_rule(factor), tables), expected, atol=1e-6
    )

  def test_is_the_rule_of_the_paper_at_1(self):
    testing.check_rule(lenience.make_rule(1.0), tolerance=1e-12)

  @pytest.mark.parametrize(
      ('factor', 'expected'),
      [(1.0, 1), (0.51, 1), (0.49, 2), (0.26, 2), (0.24, 3), (0.0, 3)],
  )
  def test_at_temperature_0(self, factor, expected):
    """Draft tokens of 1, 1/2, 1/4 and 0 times the largest probability."""
    probs = jnp.array([4.0, 2.0, 1.0, 0.0]) / 7
    logits = jnp.broadcast_to(3 + jnp.log(probs), (1, 5, 4))
    greedy = sampling.Sampling(0.0)
    draft = contracts.Draft(
        jnp.array([[0, 1, 2, 3]], jnp.int32),
        jnp.array([4], jnp.int32),
        jnp.full((1, 4, 4), 0.25),
    )
    found = lenience.make_rule(factor)(
        contracts.Scores(
            logits,
            sampling.standardize(logits, greedy),
            greedy.of_rows(len(logits)),
        ),
        draft,
        jnp.full((1, 4), 0.99),
    )
    assert found.num_accepted.tolist() == [expected]
    assert jnp.argmax(found.next_weights, axis=-1).tolist() == [0]

  @pytest.mark.parametrize('factor', [-0.1, 1.1, float('nan'), 'abc', None])
  def test_out_of_range(self, factor):
    with pytest.raises(ValueError, match=r'lenience must lie in \[0, 1\]'):
      lenience.make_rule(factor)


class TestExactMatch:

  def test_acceptance_probability(self):
    tables = tables_of(1)
    p, q = first(tables)
    np.testing.assert_allclose(
        accepted(exact_match.ExactMatch(), tables), np.sum(p * q, axis=1)
    )

  def test_misstated_probabilities_do_not_matter(self):
    def misstated(scores, draft, uniforms):
      return exact_match.ExactMatch()(
          scores, draft.replace(probs=jnp.roll(draft.probs, 1, -1)), uniforms
      )

    assert max(testing.distances(misstated, tables_of(2, count=5))) < 1e-12


class TestRejectionSampling:

  def test_acceptance_probability(self):
    tables = tables_of(1)
    p, q = first(tables)
    ratios = np.divide(q, p, out=np.full_like(p, np.inf), where=p > 0)
    found = accepted(rejection_sampling.RejectionSampling(), tables)
    np.testing.assert_allclose(found, np.min(ratios, axis=1), atol=1e-12)

  def test_never_accepts_a_point_mass_of_a_sampled_target(self):
    tables = [
        x
        for x in tables_of(1, kind='point_masses')
        if np.max(x.target_probs[0]) < 1
    ]
    found = accepted(rejection_sampling.RejectionSampling(), tables)
    assert not np.any(found)


class TestTypicalAcceptance:

  def test_threshold(self):
    """p exceeds min(epsilon, delta exp(-H)); uniforms do not matter."""
    tables = tables_of(1)
    p, q = first(tables)
    entropy = -np.sum(p * np.log(np.where(p > 0, p, 1)), axis=1)
    threshold = np.minimum(0.25, 0.5 * np.exp(-entropy))
    expected = np.sum(q * (p > threshold[:, None]), axis=1)
    rule = typical_acceptance.make_rule(0.25, 0.5)
    np.testing.assert_allclose(accepted(rule, tables), expected)
    assert 0 < np.sum(threshold == 0.25) < len(p)

  def test_next_token_is_the_target_s(self):
    """After a rejected token too, which may be drawn again."""
    tables = tables_of(1, count=5)
    rule = typical_acceptance.make_rule(1.0, 1.0)
    for each, emitted in zip(tables, testing.emissions(rule, tables)):
      rejected = sum(w for x, w in emitted.items() if len(x) == 1)
      for token, p in enumerate(each.target_probs[0]):
        assert emitted.get((token,), 0) == pytest.approx(rejected * p)

  @pytest.mark.parametrize(
      'values', [(0.0, 0.5), (0.5, 1.5), (-1, 0.5), ('abc', 0.5)]
  )
  def test_out_of_range(self, values):
    with pytest.raises(ValueError, match=r'(epsilon|delta) must lie in \(0'):
      typical_acceptance.make_rule(*values)


BLOCK = block.BlockVerification()


def gains(gamma, **settings):
  """Return how many more draft tokens are accepted than token by token."""
  tables = tables_of(gamma, count=200, vocab_size=3, **settings)
  return accepted(BLOCK, tables) - accepted(verification.TOKENWISE, tables)


class TestAcceptedTokens:

  @pytest.mark.parametrize('kind', table_pairs.KINDS)
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
