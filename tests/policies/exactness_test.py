# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The distribution of outputs under policies, by enumeration."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import autoregression
from speculative_t5x.policies import confidence
from speculative_t5x.policies import expected_speed
from speculative_t5x.policies import marginal_gain
from speculative_t5x.policies import schedule
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import step as step_lib
from tests import enumeration
from tests.speculation import distribution_test

GAMMA = 3
# The states of rows, one of which each prefix has.
THRESHOLDS = 0.0, 0.3, 0.45, 0.6, 1.0
RATES = (0.0, 9.0), (3.0, 6.0), (6.0, 9.0), (9.0, 9.0)
POLICIES = {
    'schedule': (schedule.Schedule((1, 0, 2, 3)), range(4)),
    'confidence': (confidence.Confidence(0.5), THRESHOLDS),
    'entropy': (confidence.Entropy(0.5, scale=0.3), THRESHOLDS),
    'expected speed': (expected_speed.ExpectedSpeed(0.3, 1.2), RATES),
    'marginal gain': (marginal_gain.MarginalGain(0.3, 1.2), RATES),
}


@dataclasses.dataclass(frozen=True)
class PolicyCase(enumeration.Case):
  """A pair under a policy, whose state differs from prefix to prefix."""

  policy: contracts.DraftLengthPolicy | None = None
  states: tuple = ()

  def state_of(self, prefix):
    return self.states[(3 * len(prefix) + sum(prefix)) % len(self.states)]

  def policy_state(self, paths, state):
    """See `enumeration.Case.policy_state`."""
    values = np.array([self.state_of(path[1]) for path in paths])
    leaves, structure = jax.tree.flatten(state)
    columns = values.reshape(len(paths), -1).T
    return jax.tree.unflatten(
        structure,
        [jnp.asarray(c, x.dtype) for c, x in zip(columns, leaves, strict=True)],
    )

  def drafts(self, example, prefix):
    """See `enumeration.Case.drafts`; production code says where they stop."""
    paths = [(example, prefix)]
    state = self.policy_state(paths, self.policy.init(1))
    remaining = self.limits[example] - len(prefix)
    wanted = int(
        self.policy.num_wanted(state, jnp.array([remaining]), self.gamma)[0]
    )
    wanted = min(wanted, remaining)

    @functools.cache
    def continues(tokens):
      place = self.language.place(prefix + tokens[:-1])
      logits = jnp.asarray(self.draft_tables[example][place])[None]
      last = jnp.array([tokens[-1]], jnp.int32)
      return bool(self.policy.continues(state, logits, last, self.gamma)[0])

    for weight, uniforms, tokens, probs in super().drafts(example, prefix):
      length = wanted
      for i in range(1, wanted):
        if not continues(tuple(tokens[:i])):
          length = i
          break
      yield weight, uniforms, tokens[:length], probs[:length]


def make_case(name, **setting) -> PolicyCase:
  policy, states = POLICIES[name]
  case = distribution_test.make_case(gamma=GAMMA, limits=(4, 2, 1), **setting)
  fields = {f.name: getattr(case, f.name) for f in dataclasses.fields(case)}
  return PolicyCase(**fields, policy=policy, states=tuple(states))


def make_production(
    case: PolicyCase, rule: str = 'tokenwise'
) -> enumeration.Production:
  return enumeration.Production(
      case.gamma,
      case.vocab_size,
      case.draft_tables.shape[-1],
      max(case.limits),
      policy=case.policy,
      rule=distribution_test.RULES[rule],
  )


SETTINGS = (
    {},
    {'temperature': 0.0},
    {'temperature': 0.7, 'topk': 2},
    {'draft_temperature': 1.6, 'draft_width': 5},
)


@pytest.mark.usefixtures('float64')
class TestEnumeratedDistribution:

  @pytest.mark.parametrize('rule', ['tokenwise', 'block'])
  @pytest.mark.parametrize('name', POLICIES)
  def test_outputs_follow_the_target(self, name, rule):
    self._check(name, rule)

  @pytest.mark.exhaustive
  @pytest.mark.parametrize('setting', SETTINGS, ids=str)
  @pytest.mark.parametrize('rule', distribution_test.RULES)
  @pytest.mark.parametrize('name', POLICIES)
  def test_full_product(self, name, rule, setting):
    self._check(name, rule, **setting)

  def _check(self, name, rule, **setting):
    case = make_case(name, **setting)
    production = make_production(case, rule)
    error, score_error, num_paths = distribution_test.distribution_error(
        case, production
    )
    print(f'{name}, {rule}: {num_paths} paths, error {error:.1e}')
    assert error < distribution_test.TOLERANCE
    assert score_error < 1e-5

  @pytest.mark.parametrize('name', POLICIES)
  def test_drafts_have_several_lengths(self, name):
    case = make_case(name)
    lengths = {
        len(tokens)
        for prefix in [(), (2,), (2, 2), (0, 2)]
        for _, _, tokens, _ in case.drafts(0, prefix)
    }
    assert len(lengths) >= 2

  def test_dropping_the_token_it_stops_after_is_found(self, monkeypatch):
    """A token that is dropped for its own value biases the outputs."""
    original = autoregression.draft

    def dropping(*args):
      draft, *rest = original(*args)
      view = args[4]
      is_stopped = draft.lengths < view.num_wanted
      lengths = jnp.where(is_stopped, draft.lengths - 1, draft.lengths)
      return draft.replace(lengths=jnp.maximum(lengths, 0)), *rest

    monkeypatch.setattr(autoregression, 'draft', dropping)
    case = make_case('confidence')
    error, *_ = distribution_test.distribution_error(
        case, make_production(case)
    )
    print(f'off by {error:.3f}')
    assert error > 1e-3


@pytest.mark.usefixtures('optimized')
@pytest.mark.parametrize('name', POLICIES)
class TestJittedDistribution:

  def test_joint_distribution_within_the_bound(self, name):
    policy, _ = POLICIES[name]
    distance, bound = distribution_test.total_variation(0, policy=policy)
    print(f'total variation {distance:.4f}, bound {bound:.4f}')
    assert distance <= bound

  def test_detects_uniforms_keyed_by_position(self, name, monkeypatch):
    policy, _ = POLICIES[name]
    step = distribution_test.keyed_by_position(step_lib.step)
    monkeypatch.setattr(step_lib, 'step', step)
    distance, bound = distribution_test.total_variation(
        0, distribution_test.NUM_ROWS // 4, policy=policy
    )
    print(f'total variation {distance:.4f}, bound {bound:.4f}')
    assert distance > 2 * bound
