# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how many draft tokens policies want."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.policies import confidence
from speculative_t5x.policies import expected_speed
from speculative_t5x.policies import marginal_gain
from speculative_t5x.policies import running_rate
from speculative_t5x.policies import schedule
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import outcome as outcome_lib

GAMMA = 5


def outcome(accepted, drafted, is_active=True):
  """Return the outcome of rows by their numbers of draft tokens."""
  accepted, drafted = jnp.asarray(accepted), jnp.asarray(drafted)
  return outcome_lib.none_yet(len(drafted), GAMMA)._replace(
      num_accepted=accepted,
      num_drafted=drafted,
      is_active=jnp.full(drafted.shape, is_active),
  )


def wanted(policy, state):
  rows = jnp.full((2,), 99, jnp.int32)
  return policy.num_wanted(state, rows, GAMMA).tolist()


class TestSchedule:

  def test_follows_the_list_and_stays_at_its_end(self):
    policy = schedule.Schedule([2, 0, 9])
    state = policy.init(2)
    found = []
    for _ in range(4):
      found.append(wanted(policy, state)[0])
      state = policy.update(state, outcome([0, 0], [1, 1]))
    assert found == [2, 0, GAMMA, GAMMA]
    assert hash(policy) == hash(schedule.Schedule((2, 0, 9)))

  def test_ended_rows_do_not_count(self):
    policy = schedule.Schedule((2, 0))
    state = policy.update(policy.init(2), outcome([0, 0], [1, 1], False))
    assert wanted(policy, state) == [2, 2]


class TestConfidence:

  def test_compares_the_probability_of_the_token(self):
    policy = confidence.Confidence(0.5)
    logits = jnp.log(jnp.array([[0.6, 0.4], [0.6, 0.4]]))
    tokens = jnp.array([0, 1])
    found, _ = policy.continues(policy.init(2), None, logits, tokens, GAMMA)
    assert found.tolist() == [True, False]

  @pytest.mark.parametrize('kind', [confidence.Confidence, confidence.Entropy])
  def test_threshold_follows_the_acceptance(self, kind):
    policy = kind(0.5, tuning=0.1, acceptance=0.75)
    state = policy.update(policy.init(4), outcome([4, 0, 0, 1], [4, 2, 0, 4]))
    np.testing.assert_allclose(state, [0.475, 0.575, 0.5, 0.55])
    fixed = kind(0.5)
    state = fixed.update(fixed.init(2), outcome([4, 0], [4, 2]))
    assert state.tolist() == [0.5, 0.5]

  @pytest.mark.parametrize('kind', [confidence.Confidence, confidence.Entropy])
  def test_threshold_stays_a_share_and_decides(self, kind):
    policy = kind(0.5, tuning=2.0, acceptance=0.5)
    state = policy.update(policy.init(2), outcome([4, 0], [4, 4]))
    assert state.tolist() == [0, 1]
    logits = jnp.array([[0.1, 0.0], [0.1, 0.0]])  # neither sure nor unsure
    tokens = jnp.zeros(2, jnp.int32)
    found, _ = policy.continues(state, None, logits, tokens, GAMMA)
    assert found.tolist() == [True, False]

  def test_entropy_of_a_uniform_and_of_a_sure_distribution(self):
    policy = confidence.Entropy(0.5, scale=0.5)
    logits = jnp.array([[0.0, 0, 0, 0], [0, -jnp.inf, -jnp.inf, -jnp.inf]])
    tokens = jnp.zeros(2, jnp.int32)
    assert 1 - np.sqrt(0.5 * np.log(4)) < 0.5
    found, _ = policy.continues(policy.init(2), None, logits, tokens, GAMMA)
    assert found.tolist() == [False, True]


class TestExpectedSpeed:

  def test_is_the_best_by_theorem_3_8(self):
    """Verification of powers of two and of the whole block is compiled."""
    policy = expected_speed.ExpectedSpeed(0.1, 1.5)
    widths = [1, 2, 4, 4, 6, 6]
    times = [0.1 * g + 1 + (w - 1) * 0.1 for g, w in enumerate(widths)]
    np.testing.assert_allclose(policy.times(GAMMA), times, rtol=1e-6)
    for alpha in (0.05, 0.4, 0.7, 0.95):
      tested = 1e6  # the prior has no weight any more
      state = running_rate.Tested(
          jnp.full((2,), alpha * tested), jnp.full((2,), tested)
      )
      tokens = [sum(alpha**i for i in range(g + 1)) for g in range(GAMMA + 1)]
      best = int(np.argmax(np.array(tokens) / times))
      assert wanted(policy, state) == [best, best]

  def test_forgets(self):
    policy = expected_speed.ExpectedSpeed(0.1, 1.2, decay=0.5)
    state = policy.update(policy.init(2), outcome([4, 1], [4, 4]))
    assert state.tested.tolist() == [4, 2]
    state = policy.update(state, outcome([0, 0], [0, 0]))
    assert state.tested.tolist() == [2, 1]
    assert state.accepted.tolist() == [2, 0.5]
    after = policy.update(state, outcome([3, 3], [3, 3], is_active=False))
    assert after.tested.tolist() == [2, 1]

  def test_times_of_each_width(self):
    """Gamma 5 compiles the widths 1, 2, 4 and 6."""
    ratios = {2: 1.4, 4: 1.5, 8: 1.7}
    policy = expected_speed.ExpectedSpeed(0.1, ratios)
    expected = [1, 1.5, 1.7, 1.8, 2.0, 2.1]
    np.testing.assert_allclose(policy.times(GAMMA), expected, rtol=1e-6)
    assert hash(policy)


# What makes a policy, its needed settings, and a setting that is out of range.
COSTS = {'c': 0.1, 'verify_cost_ratio': {2: 1.4, 8: 1.7}}
BAD = [
    (schedule.Schedule, {}, {'lengths': (2, -1)}),
    (schedule.Schedule, {}, {'lengths': '24'}),
    (confidence.Confidence, {}, {'threshold': 1.1}),
    (confidence.Confidence, {}, {'acceptance': -1}),
    (confidence.Entropy, {}, {'tuning': True}),
    (confidence.Entropy, {}, {'scale': -1}),
    (expected_speed.ExpectedSpeed, COSTS, {'c': '0.1'}),
    (expected_speed.ExpectedSpeed, COSTS, {'verify_cost_ratio': {1: 1.0}}),
    (expected_speed.ExpectedSpeed, COSTS, {'verify_cost_ratio': {2: '1.5'}}),
    (expected_speed.ExpectedSpeed, COSTS, {'verify_cost_ratio': (1.4, 1.7)}),
    (expected_speed.ExpectedSpeed, COSTS, {'prior_alpha': 2}),
    (expected_speed.ExpectedSpeed, COSTS, {'prior_weight': 0}),
    (expected_speed.ExpectedSpeed, COSTS, {'decay': 1.5}),
    (marginal_gain.MarginalGain, COSTS, {'exponent': -1}),
]


@pytest.mark.parametrize(('kind', 'needed', 'setting'), BAD, ids=str)
def test_bad_settings(kind, needed, setting):
  (name,) = setting
  with pytest.raises(ValueError, match=f'{name} must'):
    kind(**(needed | setting))


class TestNames:
  """A job that resumes finds what it measured by the name of the policy."""

  @pytest.mark.parametrize(
      ('kind', 'needed'),
      [
          (confidence.Confidence, {'tuning': 0.1}),
          (confidence.Entropy, {'tuning': 0.1}),
          (schedule.Schedule, {'lengths': (1,)}),
          (expected_speed.ExpectedSpeed, COSTS),
          (marginal_gain.MarginalGain, COSTS),
      ],
  )
  def test_tell_all_settings_apart(self, kind, needed):
    policy = kind(**needed)
    for field in dataclasses.fields(policy):
      match field.name:
        case 'lengths':
          other = (1, 2)
        case 'verify_cost_ratio':
          other = {2: 1.4, 8: 1.704}
        case name:
          other = 0.999 * getattr(policy, name)
      changed = dataclasses.replace(policy, **{field.name: other})
      assert changed.name != policy.name


class TestMarginalGain:

  @staticmethod
  def length(policy, alpha, probs, num_before=0):
    """Return the draft tokens of a draft with these probabilities.

    Those of a drafter before it are not among them.
    """
    tested = 1e6  # the prior has no weight any more
    state = running_rate.Tested(
        jnp.full((1,), alpha * tested), jnp.full((1,), tested)
    )
    progress = policy.begin(state, jnp.array([num_before]), GAMMA)
    for count, prob in enumerate(probs, 1):
      logits = jnp.log(jnp.array([[prob, 1 - prob]]))
      continues, progress = policy.continues(
          state, progress, logits, jnp.zeros(1, jnp.int32), GAMMA
      )
      if not continues[0]:
        return count
    return len(probs)

  @pytest.mark.parametrize('ratio', [1.0, {2: 1.2, 4: 1.5, 6: 1.8}], ids=str)
  @pytest.mark.parametrize('exponent', [1.0, 1.5])
  def test_goes_on_while_any_number_of_tokens_pays(self, ratio, exponent):
    policy = marginal_gain.MarginalGain(0.15, ratio, exponent=exponent)
    times = policy.times(GAMMA)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
      alpha, probs = rng.uniform(0.5, 1), rng.uniform(0.5, 1, GAMMA)
      tokens = np.cumsum([alpha**i for i in range(GAMMA + 1)])
      speed = np.max(tokens / times)
      expected = GAMMA
      for count in range(1, GAMMA):
        reach = np.prod(probs[:count]) ** exponent
        gains = [
            reach * sum(alpha**i for i in range(1, more + 1))
            - speed * (times[count + more] - times[count])
            for more in range(1, GAMMA + 1 - count)
        ]
        if max(gains) <= 0:
          expected = count
          break
      assert self.length(policy, alpha, probs) == expected
      found.append(expected)
    assert len(set(found)) >= 2

  def test_stops_before_a_wider_target_call(self):
    """Tokens up to the next width take no more time to verify."""
    policy = marginal_gain.MarginalGain(0.01, {2: 1.1, 4: 1.2, 6: 3.0})
    assert self.length(policy, 0.9, [0.8] * GAMMA) == 3
    assert self.length(policy, 0.9, [0.8] * 3, num_before=2) == 1
    assert self.length(policy, 0.9, [0.1] * GAMMA) < 3

  def test_a_row_that_drafted_nothing_tries_again(self):
    """Its acceptance rate returns to what it was at the beginning."""
    policy = marginal_gain.MarginalGain(0.2, 1.2)
    state = running_rate.Tested(jnp.array([0.0, 0.0]), jnp.array([90.0, 90]))
    assert wanted(policy, state) == [0, 0]
    for _ in range(100):
      state = policy.update(state, outcome([0, 0], [0, 0]))
    assert wanted(policy, state) == [GAMMA, GAMMA]


def test_gamma_without_costs():
  for kind in (expected_speed.ExpectedSpeed, marginal_gain.MarginalGain):
    policy = kind(0.1, {2: 1.4, 8: 1.7})
    draft_length.check_gamma(policy, 7)
    with pytest.raises(ValueError, match='ends at width 8, but gamma 8 has'):
      draft_length.check_gamma(policy, 8)
