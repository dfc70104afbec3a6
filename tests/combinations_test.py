# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every exact combination of drafter, rule and policy keeps the distribution.

Pairs of choices are tested always, and the full product by `make test-all`.
"""

import contextlib
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import autoregression
from speculative_t5x.drafters import in_order
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import verification
from tests import combinations
from tests import reachable_states
from tests import tiny_drafters
from tests.speculation import distribution_test

pytestmark = pytest.mark.long

FACTORS = (
    tiny_drafters.NAMES,
    tuple(combinations.RULES),
    tuple(combinations.POLICIES),
)
PAIRS = combinations.pairwise(*FACTORS)
PRODUCT = list(itertools.product(*FACTORS))
SAMPLINGS = {
    'as it is': {},
    'greedy': dict(temperature=0.0),
    'cut': dict(temperature=0.7, topk=2),
}
_label = lambda values: ' + '.join(map(str, values))
# All draft lengths, and the probabilities of draft tokens, matter to these.
STOPPING = 'confidence', 'tuned confidence'


def test_pairs_cover_all_choices():
  for i, j in itertools.combinations(range(len(FACTORS)), 2):
    found = {(values[i], values[j]) for values in PAIRS}
    assert found == set(itertools.product(FACTORS[i], FACTORS[j]))
  assert len(PAIRS) < len(PRODUCT) / 3


@contextlib.contextmanager
def precision(drafter: str):
  """Sets float64 for tables, and exact products for networks."""
  with (
      jax.enable_x64(drafter not in tiny_drafters.NETWORKS),
      jax.default_matmul_precision('highest'),
  ):
    yield


def make_program(
    drafter: str, gamma: int = 2, sampling: str = 'as it is', **choices
) -> reachable_states.Program:
  return reachable_states.Program(
      tiny_drafters.make(drafter, gamma),
      sampling_lib.make_sampling(**SAMPLINGS[sampling]),
      **choices,
  )


# Apart, because probabilities are kept in the precision of the first use.
enumerated_program = functools.cache(make_program)
sampled_program = functools.cache(lambda drafter: make_program(drafter))


@functools.cache
def known_decisions(drafter: str, rule: str) -> dict:
  """Returns where the decisions of a rule about a drafter are kept."""
  return {}


class TestEnumeratedDistribution:

  @pytest.mark.parametrize('values', PAIRS, ids=_label)
  def test_each_pair_of_choices(self, values):
    drafter, rule, policy = values
    with precision(drafter):
      program = enumerated_program(drafter)
      error, _ = reachable_states.error(
          program, rule, policy, known_decisions(drafter, rule)
      )
    assert error < program.pair.tolerance

  @pytest.mark.exhaustive
  @pytest.mark.parametrize('sampling', SAMPLINGS)
  @pytest.mark.parametrize('values', PRODUCT, ids=_label)
  def test_full_product(self, values, sampling):
    """Each combination is compiled on its own."""
    drafter, rule, policy = values
    gamma = 2 if drafter in tiny_drafters.NETWORKS else 3
    with precision(drafter):
      program = make_program(
          drafter,
          gamma,
          sampling,
          rule=combinations.RULES[rule],
          policy=combinations.POLICIES[policy],
      )
      error, _ = reachable_states.error(program, rule, policy, {})
    assert error < program.pair.tolerance

  @pytest.mark.parametrize('policy', combinations.POLICIES)
  def test_policies_choose_several_lengths(self, policy):
    with precision('draft model'):
      _, lengths = reachable_states.error(
          enumerated_program('draft model'),
          'tokenwise',
          policy,
          known_decisions('draft model', 'tokenwise'),
      )
    assert lengths == {2} if policy == 'fixed' else len(lengths) >= 2


def _dropping(original):
  """Drops the token after which the policy stops the draft."""

  def draft(*args):
    found, *rest = original(*args)
    view = args[4]
    is_stopped = found.lengths < view.num_wanted
    lengths = jnp.where(is_stopped, found.lengths - 1, found.lengths)
    return found.replace(lengths=jnp.maximum(lengths, 0)), *rest

  return draft


def _all_chosen(original):
  """Takes samples for point masses."""

  def join(first, second):
    draft = original(first, second)
    return draft.replace(is_point_mass=jnp.ones_like(draft.is_point_mass))

  return join


def _flatter(original):
  """States other probabilities than those that were drawn from."""

  def draft(*args):
    found, *rest = original(*args)
    flatter = jnp.sqrt(found.probs)
    total = jnp.sum(flatter, axis=-1, keepdims=True)
    return found.replace(probs=flatter / jnp.maximum(total, 1e-9)), *rest

  return draft


def _biased_residual(original):
  """Resamples from p, in every rule that resamples from a residual."""
  return lambda target_probs, draft_probs: target_probs


# A fault, and the combinations that find it. Exact match draws the target's own
# tokens, whatever is drafted.
FAULTS = {
    'a policy drops a token for its own probability': (
        autoregression, 'draft', _dropping, 'draft model',
        ('tokenwise', 'block', 'rejection_sampling'), STOPPING,
    ),
    'the residual is p': (
        verification, 'residual', _biased_residual, 'draft model',
        ('tokenwise', 'block'), FACTORS[2],
    ),
}  # fmt: skip
# What a drafter states is compared with what it draws, under any rule.
MISSTATED = {
    'samples are taken for point masses': (
        in_order, 'join', _all_chosen, 'lookup then model',
    ),
    'other probabilities are stated': (
        autoregression, 'draft', _flatter, 'draft model',
    ),
}  # fmt: skip


class TestFaultsAreFound:

  @pytest.fixture(autouse=True)
  def _own_enumerators(self):
    """Keeps compiled rules with a fault from other tests."""
    reachable_states.enumerator.cache_clear()
    yield
    reachable_states.enumerator.cache_clear()

  @pytest.mark.parametrize('name', FAULTS)
  def test_by_enumeration(self, name, monkeypatch):
    module, attribute, fault, drafter, rules, policies = FAULTS[name]
    monkeypatch.setattr(module, attribute, fault(getattr(module, attribute)))
    with precision(drafter):
      program = make_program(drafter)
      for rule in rules:
        for policy in policies:
          error, _ = reachable_states.error(program, rule, policy, {})
          print(f'{name}: {drafter} + {rule} + {policy}: off by {error:.3f}')
          assert error > 1e-3

  @pytest.mark.parametrize('name', MISSTATED)
  def test_by_the_distributions_that_a_drafter_states(self, name, monkeypatch):
    module, attribute, fault, drafter = MISSTATED[name]
    monkeypatch.setattr(module, attribute, fault(getattr(module, attribute)))
    with precision(drafter), pytest.raises(AssertionError, match='it states'):
      reachable_states.error(make_program(drafter), 'tokenwise', 'fixed', {})

  def test_uniforms_keyed_by_position(self, monkeypatch):
    """After a rejection, a position needs new uniforms: under every policy."""
    step = distribution_test.keyed_by_position(step_lib.step)
    monkeypatch.setattr(step_lib, 'step', step)
    choices = [('block', policy) for policy in FACTORS[2]]
    found = sample(make_program('draft model'), choices, num_calls=3)
    for values, (distance, bound) in found.items():
      print(f'{_label(values)}: total variation {distance:.4f}')
      assert distance > 2 * bound


SAMPLES = 10_000  # per combination and call of the jitted loop


def sample(
    program: reachable_states.Program, choices, num_calls: int = 1
) -> dict[tuple[str, str], tuple[float, float]]:
  """Returns how far outputs of the jitted loop are from the target's.

  Args:
    program: of a drafter.
    choices: pairs of a rule and a policy.
    num_calls: of the loop, with `SAMPLES` rows for each choice.
  Returns:
    For each pair the total variation distance, and its bound.
  """
  index = lambda names, which: jnp.repeat(
      jnp.array([list(names).index(x[which]) for x in choices], jnp.int32),
      SAMPLES,
  )
  rules = index(combinations.RULES, 0)
  policies = index(combinations.POLICIES, 1)
  states = [program.decode(rules, policies, seed) for seed in range(num_calls)]
  arrays = [
      np.concatenate(
          [
              np.asarray(x).reshape(len(choices), SAMPLES, *x.shape[1:])
              for x in each
          ],
          axis=1,
      )
      for each in zip(*[(x.sequences, x.num_tokens) for x in states])
  ]
  exact = reachable_states.exact_distribution(program, 0)
  return {
      choice: distribution_test.distance(exact, *own)
      for choice, *own in zip(choices, *arrays)
  }


def _by_drafter(combined):
  found = {drafter: [] for drafter in FACTORS[0]}
  for drafter, *choice in combined:
    found[drafter].append(tuple(choice))
  return found.items()


class TestJittedDistribution:

  @pytest.mark.parametrize(('drafter', 'choices'), _by_drafter(PAIRS))
  def test_each_pair_of_choices(self, drafter, choices):
    self._check(drafter, choices, 1)

  @pytest.mark.exhaustive
  @pytest.mark.usefixtures('optimized')
  @pytest.mark.parametrize(('drafter', 'choices'), _by_drafter(PRODUCT))
  def test_full_product(self, drafter, choices):
    self._check(drafter, choices, 20)

  def _check(self, drafter, choices, num_calls):
    with jax.default_matmul_precision('highest'):
      found = sample(sampled_program(drafter), choices, num_calls)
    for values, (distance, bound) in found.items():
      print(f'{drafter} + {_label(values)}: {distance:.4f}, bound {bound:.4f}')
      assert distance <= bound
