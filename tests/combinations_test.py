# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every exact combination of drafter, rule and policy keeps the distribution.

Each rule with each policy is tested always, with one of three drafters, and the
full product by `make test-all`.
"""

import contextlib
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import in_order
from speculative_t5x.rules import lenience
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.testing import reachable
from speculative_t5x.testing import step_programs
from tests import combinations
from tests import tiny_drafters

pytestmark = pytest.mark.long

DRAFTERS = *tiny_drafters.NAMES, 'decoder alone'
RULES_AND_POLICIES = list(
    itertools.product(combinations.RULES, combinations.POLICIES)
)
# One drafter of each kind of uniforms: one per token, of several drafters, and
# none.
ALWAYS = 'draft model', 'lookup then model', 'external'
SOME = [
    (ALWAYS[i % len(ALWAYS)], *each)
    for i, each in enumerate(RULES_AND_POLICIES)
]
# What `enumeration_test.py` does not enumerate, a table, a lookup of either
# kind, and a head that drafts blocks. The full product has all.
ONCE = [
    ('unigram', 'tokenwise', 'expected speed'),
    ('lookup in hints', 'tokenwise', 'marginal gain'),
    ('three in order', 'block', 'tuned confidence'),
    ('lookup then block', 'tokenwise', 'marginal gain'),
]
GAMMAS = {'three in order': 3}  # so that each of them can draft
PRODUCT = [(x, *each) for x in DRAFTERS for each in RULES_AND_POLICIES]
SAMPLINGS = {
    'as it is': {},
    'greedy': dict(temperature=0.0),
    'cut': dict(temperature=0.7, top_k=2),
}
_label = lambda values: ' + '.join(map(str, values))


@contextlib.contextmanager
def precision(drafter: str):
  """Set float64 for tables, and exact products for networks."""
  with (
      jax.enable_x64(drafter not in tiny_drafters.NETWORKS),
      jax.default_matmul_precision('highest'),
  ):
    yield


def make_program(
    drafter: str,
    gamma: int | None = None,
    policy: draft_length.Policy | None = None,
) -> step_programs.Program:
  """Return a program with one policy, or with any in each row."""
  return step_programs.Program(
      tiny_drafters.make(drafter, gamma or GAMMAS.get(drafter, 2)),
      policy or combinations.PolicyOfRow(first='fixed'),
  )


# Apart, because probabilities are kept in the precision of the first use.
enumerated_program = functools.cache(make_program)
sampled_program = functools.cache(lambda drafter: make_program(drafter))


def reach(drafter: str, rule: str, policy: str) -> reachable.Reached:
  """Enumerate with a rule and a policy of a program for all of them."""
  program, own_rule = (
      enumerated_program(drafter), combinations.rule_number(rule)
  )  # fmt: skip
  state = program.begin(own_rule)
  index = np.full_like(
      state.policy_state.index, list(combinations.POLICIES).index(policy)
  )
  state = state.replace(policy_state=state.policy_state._replace(index=index))
  return reachable.reach(
      program, own_rule, combinations.enumerator(rule), state
  )


class TestEnumeratedDistribution:

  @pytest.mark.parametrize('values', [*SOME, *ONCE], ids=_label)
  def test_some_combinations(self, values):
    drafter, rule, policy = values
    with precision(drafter):
      program = enumerated_program(drafter)
      found = reach(drafter, rule, policy)
      assert combinations.error(program, found) < program.pair.tolerance
    if drafter == 'draft model':  # with each policy
      is_fixed = policy == 'fixed'
      assert found.lengths == {2} if is_fixed else len(found.lengths) > 1

  @pytest.mark.exhaustive
  @pytest.mark.parametrize('values', PRODUCT, ids=_label)
  def test_full_product(self, values):
    """Each combination is compiled on its own."""
    drafter, rule, policy = values
    gamma = 2 if drafter in tiny_drafters.NETWORKS else 3
    with precision(drafter):
      program = make_program(drafter, gamma, combinations.POLICIES[policy])
      for sampling in SAMPLINGS.values():
        program = program.with_sampling(sampling_lib.Sampling(**sampling))
        found = reachable.reach(
            program, combinations.RULES[rule], combinations.enumerator(rule)
        )
        assert combinations.error(program, found) < program.pair.tolerance


class TestFaultsAreFound:
  """See `testing_of_steps_test.py` for faults of drafters and policies."""

  def test_samples_that_are_taken_for_point_masses(self, monkeypatch):
    join = in_order.join

    def all_chosen(first, second):
      draft = join(first, second)
      return draft.replace(is_point_mass=jnp.ones_like(draft.is_point_mass))

    monkeypatch.setattr(in_order, 'join', all_chosen)
    program = make_program('lookup then model', policy=draft_length.Fixed())
    with (
        precision('lookup then model'),
        pytest.raises(AssertionError, match='that it states'),
    ):
      reachable.reach(
          program,
          combinations.RULES['tokenwise'],
          combinations.enumerator('tokenwise'),
      )

  def test_uniforms_keyed_by_position(self, monkeypatch):
    """After a rejection, a position needs new uniforms."""
    step = step_lib.step

    def by_position(setup, batch, state, uniforms):
      of = lambda key, at: jax.random.bits(
          jax.random.fold_in(key, at), (2, 2), jnp.uint32
      )
      at = state.num_tokens[:, None] + jnp.arange(2)
      drawn = jax.vmap(jax.vmap(of, (None, 0)))(batch.keys, at)
      uniforms = [drawn[:, :, 0], drawn[:, :, 1], drawn[:, :1, 0]]
      return step(setup, batch, state, jnp.concatenate(uniforms, axis=1))

    monkeypatch.setattr(step_lib, 'step', by_position)
    choices = [('block', policy) for policy in ('fixed', 'confidence')]
    found = sample(make_program('draft model'), choices, num_calls=3)
    for values, (distance, bound) in found.items():
      print(f'{_label(values)}: total variation {distance:.4f}')
      assert distance > 2 * bound


SAMPLES = 10_000  # per combination and call of the jitted loop


def sample(
    program: step_programs.Program, choices, num_calls: int = 1, rule=None
) -> dict[tuple[str, str], tuple[float, float]]:
  """Return how far outputs of the jitted loop are from the target's.

  For each pair of a rule and a policy in `choices`, with `SAMPLES` rows per
  call: the total variation distance, and its bound. A `rule` is that of all.
  """
  index = lambda names, which: jnp.repeat(
      jnp.array([list(names).index(x[which]) for x in choices], jnp.int32),
      SAMPLES,
  )
  rule = rule or combinations.RuleOfRow(index(combinations.RULES, 0))
  policies = index(combinations.POLICIES, 1)
  decode = jax.jit(functools.partial(_decode, program))
  states = [decode(rule, policies, seed) for seed in range(num_calls)]
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
      choice: total_variation(exact, *own)
      for choice, *own in zip(choices, *arrays)
  }


def total_variation(
    exact: dict[tuple[int, ...], float],
    sequences: np.ndarray,
    num_tokens: np.ndarray,
) -> tuple[float, float]:
  """Return the total variation distance of samples, and its bound.

  With K outputs and N rows, a correct loop exceeds t = sqrt((K ln 2 +
  ln 10^6) / 2N) with probability at most 10^-6, and one whose distribution is
  2t away stays below t with probability at most 10^-6.
  """
  found, counts = np.unique(
      np.column_stack([sequences, num_tokens]), axis=0, return_counts=True
  )
  share = {
      tuple(row[: row[-1]]): count / len(sequences)
      for row, count in zip(found.tolist(), counts.tolist())
  }
  assert share.keys() <= exact.keys()
  distance = 0.5 * sum(abs(share.get(x, 0.0) - p) for x, p in exact.items())
  bound = math.sqrt(
      (len(exact) * math.log(2) + math.log(1e6)) / (2 * len(sequences))
  )
  return distance, bound


def _decode(
    program: step_programs.Program, rule, policies: jax.Array, seed
) -> state_lib.State:
  """Return the states after the loop, of rows of the first example."""
  setup, batch, state = program.start(
      rule, program.samplings, np.array([0]), len(policies)
  )
  keys = state_lib.row_keys(seed, jnp.arange(len(policies), dtype=jnp.int32))
  policy_state = state.policy_state._replace(index=policies)
  run = loop.Run(
      batch.replace(keys=keys), state.replace(policy_state=policy_state), None
  )
  return loop.advance(setup, run, max(program.pair.limits))[0].state


def _by_drafter(combined):
  found = {}
  for drafter, *choice in combined:
    found.setdefault(drafter, []).append(tuple(choice))
  return found.items()


class TestJittedDistribution:
  """Tier 3, sampled: the compiled loop with its own uniforms."""

  @pytest.mark.parametrize(('drafter', 'choices'), _by_drafter(SOME))
  def test_some_combinations(self, drafter, choices):
    self._check(drafter, choices, 1)

  def test_detects_a_rule_that_is_not_lossless(self):
    (found,) = sample(
        sampled_program('draft model'),
        [('tokenwise', 'fixed')],
        num_calls=2,
        rule=lenience.make_rule(0.3),
    ).values()
    assert found[0] > 2 * found[1]

  @pytest.mark.exhaustive
  @pytest.mark.usefixtures('optimized')
  @pytest.mark.parametrize(('drafter', 'choices'), _by_drafter(PRODUCT))
  def test_full_product(self, drafter, choices):
    self._check(drafter, choices, 4)

  def _check(self, drafter, choices, num_calls) -> float:
    """Check all distances; return the largest bound."""
    with jax.default_matmul_precision('highest'):
      found = sample(sampled_program(drafter), choices, num_calls)
    for values, (distance, bound) in found.items():
      print(f'{drafter} + {_label(values)}: {distance:.4f}, bound {bound:.4f}')
      assert distance <= bound
    return max(bound for _, bound in found.values())
