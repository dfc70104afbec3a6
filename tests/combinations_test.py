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

from speculative_t5x import testing
from speculative_t5x.drafters import autoregression
from speculative_t5x.drafters import in_order
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import reachable
from speculative_t5x.testing import step_programs
from tests import combinations
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
    drafter: str,
    gamma: int = 2,
    sampling: str = 'as it is',
    policy: contracts.DraftLengthPolicy | None = None,
) -> step_programs.Program:
  """Returns a program with one policy, or with any in each row."""
  return step_programs.Program(
      tiny_drafters.make(drafter, gamma),
      policy or combinations.PolicyOfRow(),
      sampling_lib.make_sampling(**SAMPLINGS[sampling]),
  )


# Apart, because probabilities are kept in the precision of the first use.
enumerated_program = functools.cache(make_program)
sampled_program = functools.cache(lambda drafter: make_program(drafter))


@functools.cache
def enumerator(rule: str) -> testing.Enumerator:
  return testing.Enumerator(combinations.RULES[rule])


@functools.cache
def decisions(drafter: str, rule: str) -> reachable.Decisions:
  """Returns the decisions of a rule about the drafts of a drafter."""
  return reachable.Decisions(enumerator(rule))


def reach(
    program: step_programs.Program, rule: str, policy: str, known=None
) -> reachable.Reached:
  """Enumerates with a rule and a policy of a program for all of them."""
  number = list(combinations.RULES).index(rule)
  own_rule = combinations.RuleOfRow(np.int32(number))
  state = program.begin(own_rule)
  index = np.full_like(
      state.policy_state.index, list(combinations.POLICIES).index(policy)
  )
  state = state.replace(policy_state=state.policy_state._replace(index=index))
  known = known or reachable.Decisions(enumerator(rule))
  return reachable.reach(program, own_rule, known, state)


def error(program: step_programs.Program, found: reachable.Reached) -> float:
  """Returns the largest error of the probability of an output."""
  largest = max(
      abs(p.get(output, 0.0) - own.get(output, 0.0))
      for p, own in zip(
          reachable.exact_distributions(program), found.distributions
      )
      for output in p.keys() | own.keys()
  )
  print(f'{found.num_paths} paths, error {largest:.1e}')
  return largest


class TestEnumeratedDistribution:

  @pytest.mark.parametrize('values', PAIRS, ids=_label)
  def test_each_pair_of_choices(self, values):
    drafter, rule, policy = values
    with precision(drafter):
      program = enumerated_program(drafter)
      found = reach(program, rule, policy, decisions(drafter, rule))
      assert error(program, found) < program.pair.tolerance

  @pytest.mark.exhaustive
  @pytest.mark.parametrize('sampling', SAMPLINGS)
  @pytest.mark.parametrize('values', PRODUCT, ids=_label)
  def test_full_product(self, values, sampling):
    """Each combination is compiled on its own."""
    drafter, rule, policy = values
    gamma = 2 if drafter in tiny_drafters.NETWORKS else 3
    with precision(drafter):
      program = make_program(
          drafter, gamma, sampling, combinations.POLICIES[policy]
      )
      found = reachable.reach(
          program,
          combinations.RULES[rule],
          reachable.Decisions(enumerator(rule)),
      )
      assert error(program, found) < program.pair.tolerance

  @pytest.mark.parametrize('policy', combinations.POLICIES)
  def test_policies_choose_several_lengths(self, policy):
    with precision('draft model'):
      lengths = reach(
          enumerated_program('draft model'),
          'tokenwise',
          policy,
          decisions('draft model', 'tokenwise'),
      ).lengths
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
    'the residual is p': (
        verification, 'residual', _biased_residual, 'draft model',
        ('tokenwise', 'block'), FACTORS[2],
    ),
}  # fmt: skip
# What is drafted is compared with what is drawn, under any rule.
MISSTATED = {
    'samples are taken for point masses': (
        in_order, 'join', _all_chosen, 'lookup then model', 'fixed',
        'that it states',
    ),
    'other probabilities are stated': (
        autoregression, 'draft', _flatter, 'draft model', 'fixed',
        'that it states',
    ),
    'a token is dropped for its own probability': (
        autoregression, 'draft', _dropping, 'draft model', 'confidence',
        'drawn and left untested',
    ),
    'a token is dropped for its own probability, by a threshold that moves': (
        autoregression, 'draft', _dropping, 'draft model', 'tuned confidence',
        'drawn and left untested',
    ),
}  # fmt: skip


class TestFaultsAreFound:

  @pytest.fixture(autouse=True)
  def _own_enumerators(self):
    """Keeps compiled rules with a fault from other tests."""
    enumerator.cache_clear()
    yield
    enumerator.cache_clear()

  @pytest.mark.parametrize('name', FAULTS)
  def test_by_enumeration(self, name, monkeypatch):
    module, attribute, fault, drafter, rules, policies = FAULTS[name]
    monkeypatch.setattr(module, attribute, fault(getattr(module, attribute)))
    with precision(drafter):
      program = make_program(drafter)
      for rule in rules:
        for policy in policies:
          found = error(program, reach(program, rule, policy))
          print(f'{name}: {drafter} + {rule} + {policy}: off by {found:.3f}')
          assert found > 1e-3

  @pytest.mark.parametrize('name', MISSTATED)
  def test_by_what_is_drafted(self, name, monkeypatch):
    module, attribute, fault, drafter, policy, message = MISSTATED[name]
    monkeypatch.setattr(module, attribute, fault(getattr(module, attribute)))
    with precision(drafter), pytest.raises(AssertionError, match=message):
      reach(make_program(drafter), 'tokenwise', policy)

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
    program: step_programs.Program, choices, num_calls: int = 1
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
  decode = jax.jit(functools.partial(_decode, program))
  states = [decode(rules, policies, seed) for seed in range(num_calls)]
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
  exact = reachable.exact_distributions(program)[0]
  return {
      choice: distribution_test.distance(exact, *own)
      for choice, *own in zip(choices, *arrays)
  }


def _decode(
    program: step_programs.Program, rules: jax.Array, policies: jax.Array, seed
) -> state_lib.State:
  """Returns the states after the loop, of rows of the first example."""
  setup, batch, state = program.start(
      combinations.RuleOfRow(rules),
      program.sampling,
      np.array([0]),
      len(rules),
  )
  keys = state_lib.row_keys(seed, jnp.arange(len(rules), dtype=jnp.int32))
  policy_state = state.policy_state._replace(index=policies)
  run = loop.Run(
      batch.replace(keys=keys), state.replace(policy_state=policy_state), None
  )
  return loop.advance(setup, run, max(program.pair.limits))[0].state


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
