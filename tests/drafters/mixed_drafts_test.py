# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts of any length, drawn and chosen, keep the target's distribution."""

import collections
import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling
from speculative_t5x.testing import table_model
from tests import enumeration
from tests import mixed_drafts
from tests import tabular

VOCAB, LIMITS = 4, (5, 4, 2, 1)


@dataclasses.dataclass(frozen=True)
class MixedCase(enumeration.Case):
  """Paths of the drafter after a step that left it a key.

  Attributes:
    drafter: whose drafts are enumerated.
    key: see `mixed_drafts.key_of`.
  """

  drafter: mixed_drafts.MixedDrafts | None = None
  key: int = 0

  def drafts(self, example, prefix):
    """See `enumeration.Case.drafts`."""
    last = prefix[-1] if prefix else 0
    lengths, is_point_mass, chosen, probs = (
        table[last, self.key] for table in self.drafter.tables
    )
    length = min(int(lengths), self.gamma - self.key)
    unused = self.drafter.num_uniforms - 1 - length

    def extend(weight, uniforms, tokens, found):
      i = len(tokens)
      if i == length:
        yield weight, [0.5, *uniforms, *[0.5] * unused], tokens, found
        return
      before = tokens[-1] if tokens else last
      q = self.drafter.tables.probs[before, self.key, i]
      if is_point_mass[i]:
        q = np.eye(self.vocab_size)[chosen[i]]
      edges = np.concatenate([[0], np.cumsum(q) / q.sum()])
      for token in np.flatnonzero(q > 0).tolist():
        middle = (edges[token] + edges[token + 1]) / 2
        yield from extend(
            weight * q[token],
            [*uniforms, middle],
            [*tokens, token],
            [*found, q],
        )

    yield from extend(1.0, [], [], [])

  def draft_state(self, num_tokens, cache, rng):
    """See `enumeration.Case.draft_state`."""
    return jnp.asarray(rng.integers(0, 9, num_tokens.shape, np.int32))


def joint_distributions(case, production):
  """Returns each example's distribution over outputs."""
  rng = np.random.default_rng(0)
  found = [collections.defaultdict(float) for _ in case.limits]
  frontier = {(example, (), 0): 1.0 for example in range(len(case.limits))}
  while frontier:
    paths = [
        ((*start, frontier[*start, key] * length, 0.0, uniforms), key)
        for key in {key for *_, key in frontier}
        for start, length, uniforms in enumeration.paths_of(
            dataclasses.replace(case, key=key),
            production.enumerator,
            [place[:2] for place in frontier if place[2] == key],
        )
    ]
    frontier = collections.defaultdict(float)
    for i in range(0, len(paths), enumeration.ROWS):
      chunk = paths[i : i + enumeration.ROWS]
      after = step(case, production, chunk, rng)
      keys = np.asarray(mixed_drafts.key_of(after.outcome)).tolist()
      for j, ((example, _, weight, _, _), _) in enumerate(chunk):
        tokens = tuple(after.sequences[j, : after.num_tokens[j]].tolist())
        if after.has_ended[j]:
          found[example][tokens] += weight
        else:
          frontier[example, tokens, keys[j]] += weight
  return found


def step(case, production, chunk, rng):
  """Runs the production step on one chunk of paths."""
  padded = chunk + [chunk[0]] * (enumeration.ROWS - len(chunk))
  paths, keys = zip(*padded)
  keys = jnp.asarray(keys, jnp.int32)
  examples = np.array([path[0] for path in paths], np.int32)
  limits = np.array(case.limits, np.int32)[examples]
  state = enumeration.at_prefixes(
      production.empty_state(limits), paths, case, rng
  )
  outcome = outcome_lib.none_yet(enumeration.ROWS, case.gamma)
  state = state.replace(
      outcome=outcome._replace(num_accepted=keys, num_drafted=keys),
      policy_state=keys,
  )
  return production.step(
      case, examples, state, np.array([path[-1] for path in paths])
  )


@pytest.mark.usefixtures('float64')
@pytest.mark.parametrize(('temperature', 'topk'), [(1.0, 0), (0.6, 2)])
@pytest.mark.parametrize('gamma', [1, 2, 3])
def test_distribution_is_the_target_s(gamma, temperature, topk):
  tables = table_model.random_logits(gamma, len(LIMITS), VOCAB)
  drawn_from = sampling.make_sampling(temperature, topk)
  drafter = mixed_drafts.MixedDrafts(VOCAB, gamma)
  case = MixedCase(
      tables, tables, LIMITS, gamma, drawn_from, drawn_from, drafter=drafter
  )
  production = enumeration.Production(
      gamma,
      VOCAB,
      VOCAB,
      max(LIMITS),
      drafter=drafter,
      policy=mixed_drafts.KeyPolicy(),
  )
  found = joint_distributions(case, production)
  for example, limit in enumerate(LIMITS):
    expected = tabular.exact_distribution(case.probabilities[0][example], limit)
    for output in found[example].keys() | expected.keys():
      assert found[example].get(output, 0.0) == pytest.approx(
          expected.get(output, 0.0), abs=1e-9
      )
