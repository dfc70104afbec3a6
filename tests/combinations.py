# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every rule and policy that keeps the target's distribution, in one program.

A compiled step may have another rule and another policy in each row, so that
all combinations with a drafter are compiled once. What rules and policies do
for a row depends on that row alone.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.policies import confidence
from speculative_t5x.policies import expected_speed
from speculative_t5x.policies import marginal_gain
from speculative_t5x.policies import schedule
from speculative_t5x.rules import block
from speculative_t5x.rules import exact_match
from speculative_t5x.rules import rejection_sampling
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import reachable
from speculative_t5x.testing import rules as rules_lib
from speculative_t5x.testing import step_programs

RULES = {
    'tokenwise': verification.TOKENWISE,
    'block': block.BlockVerification(),
    'exact_match': exact_match.ExactMatch(),
    'rejection_sampling': rejection_sampling.RejectionSampling(),
}
# Their numbers make drafts of all lengths out of small tables.
POLICIES = {
    'fixed': draft_length.Fixed(),
    'schedule': schedule.Schedule((1, 0, 2, 3)),
    'confidence': confidence.Confidence(0.45),
    'tuned confidence': confidence.Confidence(0.4, tuning=0.2),
    'entropy': confidence.Entropy(0.5, scale=0.3),
    'expected speed': expected_speed.ExpectedSpeed(0.3, 1.2, prior_weight=1.0),
    'marginal gain': marginal_gain.MarginalGain(0.1, 1.2, prior_weight=1.0),
}


@struct.dataclass
class RuleOfRow:
  """A rule whose choice is a value."""

  index: jax.Array  # [rows] int32, among RULES; or a scalar for all rows
  name = 'rule of row'
  is_lossless = True

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    verdicts = [rule(scores, draft, accept_uniforms) for rule in RULES.values()]
    return jax.tree.map(lambda *x: _of_row(self.index, x), *verdicts)


class StateOfRow(NamedTuple):
  """What `PolicyOfRow` carries."""

  index: jax.Array  # [rows] int32, among POLICIES
  states: tuple  # of all policies; only that of the row's own changes


@dataclasses.dataclass(frozen=True)
class PolicyOfRow:
  """A policy whose choice is a value of its state.

  Attributes:
    first: The choice of all rows at first; None for number i of row i.
  """

  first: str | None = None

  name = 'policy of row'
  is_constant = False

  def init(self, rows) -> StateOfRow:
    states = tuple(policy.init(rows) for policy in POLICIES.values())
    index = jnp.arange(rows, dtype=jnp.int32) % len(POLICIES)
    if self.first is not None:
      index = jnp.full_like(index, list(POLICIES).index(self.first))
    return StateOfRow(index, states)

  def num_wanted(self, state, num_remaining, gamma):
    return _of_row(
        state.index,
        [
            policy.num_wanted(own, num_remaining, gamma)
            for policy, own in zip(POLICIES.values(), state.states)
        ],
    )

  def begin(self, state, num_drafted, gamma):
    return tuple(
        policy.begin(own, num_drafted, gamma)
        for policy, own in zip(POLICIES.values(), state.states)
    )

  def continues(self, state, progress, logits, tokens, gamma):
    found = [
        policy.continues(own, known, logits, tokens, gamma)
        for policy, own, known in zip(POLICIES.values(), state.states, progress)
    ]
    continues, progress = zip(*found)
    return _of_row(state.index, continues), progress

  def update(self, state, outcome):
    states = []
    for i, (policy, own) in enumerate(zip(POLICIES.values(), state.states)):
      keep = lambda new, old, i=i: jnp.where(state.index == i, new, old)
      states.append(jax.tree.map(keep, policy.update(own, outcome), own))
    return StateOfRow(state.index, tuple(states))


def _of_row(index, values):
  """Return the value of each row's own choice, [rows, ...]."""
  stacked = jnp.stack(values)
  return stacked[index, jnp.arange(stacked.shape[1])]


@functools.cache
def enumerator(rule: str) -> rules_lib.Enumerator:
  """Return the boxes of a rule, which is compiled once."""
  return rules_lib.Enumerator(RULES[rule])


def rule_number(rule: str) -> RuleOfRow:
  """Return a rule for all rows, in a program that takes any."""
  return RuleOfRow(np.int32(list(RULES).index(rule)))


def error(
    program: step_programs.Program, found: reachable.Reached
) -> float:
  """Return the largest error of the probability of an output."""
  largest = max(
      abs(p.get(output, 0.0) - own.get(output, 0.0))
      for p, own in zip(
          reachable.exact_distributions(program), found.distributions
      )
      for output in p.keys() | own.keys()
  )
  print(f'{found.num_paths} paths, error {largest:.1e}')
  return largest


def draft_error(
    program: step_programs.Program, find_logits, drafted=None
) -> float:
  """Return the largest error of the distribution of a draft token.

  `find_logits` returns what the drafter should draw from, given an example and
  tokens. Of what is drafted, by default in all states that were reached, there
  are the example, the tokens before, the draft tokens and their distributions.
  """
  if drafted is None:
    (known,) = program.known.values()
    drafted = [
        (*place, tokens, np.frombuffer(probs).reshape(len(tokens), -1))
        for *place, tokens, probs in known
    ]
  draws = [
      (q, find_logits(example, prefix + tokens[:i]))
      for example, prefix, tokens, probs in drafted
      for i, q in enumerate(probs)
  ]
  found, logits = (np.array(each) for each in zip(*draws))
  width = found.shape[1]
  expected = sampling_lib.standardize(
      jnp.asarray(logits[:, :width]), program.samplings[1]
  )
  missing = width - expected.shape[1]
  return np.max(np.abs(found - np.pad(expected, ((0, 0), (0, missing)))))


def pairwise(*factors) -> list[tuple]:
  """Return few combinations with each pair of values of any two factors.

  Each is the one that has the most pairs that are still missing.
  """
  products = list(itertools.product(*factors))
  pairs = lambda values: set(itertools.combinations(enumerate(values), 2))
  missing = set().union(*map(pairs, products))
  chosen = []
  while missing:
    best = max(products, key=lambda values: len(pairs(values) & missing))
    chosen.append(best)
    missing -= pairs(best)
  return chosen
