# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the public harness that judges rules."""

import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import testing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification
from speculative_t5x.testing import boxes
from speculative_t5x.testing import table_pairs


def decide(scores, draft, uniforms):
  return verification.TOKENWISE(scores, draft, uniforms)


def changed(**changes):
  """Return a rule whose verdicts are changed."""

  def rule(scores, draft, uniforms):
    verdict = decide(scores, draft, uniforms)
    return verdict._replace(
        **{
            name: change(verdict, scores, draft)
            for name, change in changes.items()
        }
    )

  return rule


def mean_accepted(emitted):
  return sum(p * (len(tokens) - 1) for tokens, p in emitted.items())


_next_probs = lambda verdict, scores, draft: verification.probs_after(
    scores.probs, verdict.num_accepted
)


class TestCheckRule:

  def test_wrong_residual(self):
    rule = changed(next_weights=_next_probs)
    with pytest.raises(
        AssertionError,
        match=(
            r'random_tables\(gamma=2, vocab_size=3, seed=\d, temp.*kind=.* '
            r'does not keep the distribution of the target: .* is 0\.\d+, '
        ),
    ):
      testing.check_rule(rule)

  def test_a_bias_of_one_in_a_thousand(self):
    def rule(scores, draft, uniforms):
      return decide(scores, draft, 0.999 * uniforms)

    tables = testing.random_tables(0, gamma=1, vocab_size=3)
    (distance,) = testing.distances(rule, [tables])
    assert 1e-5 < distance < 1e-3
    with pytest.raises(AssertionError):
      testing.check_rule(rule)

  def test_of_logits_without_topk(self):
    def rule(scores, draft, uniforms):
      temperature = scores.sampling.temperature[:, None, None]
      probs = jax.nn.softmax(scores.logits / jnp.maximum(temperature, 1e-4))
      return decide(scores._replace(probs=probs), draft, uniforms)

    with pytest.raises(AssertionError, match='temperature=1.0, top_k=2'):
      testing.check_rule(rule)
    testing.check_rule(rule, temperatures=(0.0,))

  @pytest.mark.parametrize('width', [1, 3])
  def test_a_bias_in_blocks_of_one_length(self, width):
    """Narrow blocks occur where all drafts of a batch are short."""

    def rule(scores, draft, uniforms):
      return decide(scores, draft, uniforms * (uniforms.shape[1] != width))

    with pytest.raises(AssertionError, match=f'gamma={width}'):
      testing.check_rule(rule, gamma=3, num_tables=2)

  def test_a_threshold_near_an_end(self):
    """Accepts whatever has a uniform below 1e-7."""

    def rule(scores, draft, uniforms):
      return decide(scores, draft, jnp.where(uniforms < 1e-7, 0, 1e30))

    tables = testing.random_tables(1, gamma=1, vocab_size=3)
    (emitted,) = testing.emissions(rule, [tables])
    assert mean_accepted(emitted) == pytest.approx(
        1e-7 * np.sum(tables.draft_probs[0] * (tables.target_probs[0] > 0))
    )

  def test_uniforms_that_depend_on_each_other(self):
    """The second is compared with another number where the first is small."""

    def rule(scores, draft, uniforms):
      if uniforms.shape[1] < 2:
        return decide(scores, draft, uniforms)
      first, second = uniforms.T
      second = jnp.where(first < 0.3, second, 1 - second)
      return decide(scores, draft, jnp.stack([first, second], axis=1))

    # A uniform of 1 occurs with probability 0.
    testing.check_rule(rule, num_tables=3, tolerance=1e-9)

  @pytest.mark.parametrize(
      'change',
      [
          {'num_accepted': lambda v, s, d: d.lengths + 1},
          {'next_weights': lambda v, s, d: -s.probs[:, 0]},
          {'next_weights': lambda v, s, d: s.probs},
      ],
  )
  def test_impossible_verdicts(self, change):
    with pytest.raises(ValueError, match='must return a Verdict with num_acc'):
      testing.check_rule(changed(**change), num_tables=1)

  def test_the_example_of_the_documentation(self):
    """Its last line fails, and no other."""
    page = pathlib.Path(__file__).parents[1] / 'docs/correctness.md'
    (code,) = re.findall(r'```python\n(.*?)```', page.read_text(), re.DOTALL)
    *lines, last = code.splitlines()
    assert last.startswith('testing.check_rule(biased')
    names = {}
    exec('\n'.join(lines), names)
    with pytest.raises(AssertionError, match='does not keep the distribution'):
      exec(last, names)


def test_emissions_are_those_of_the_paper():
  """One draft token is accepted with probability beta, Theorem 3.5."""
  tables = testing.random_tables(2, gamma=1, vocab_size=5)
  (emitted,) = testing.emissions(decide, [tables])
  p, q = tables.target_probs[0], tables.draft_probs[0]
  assert sum(emitted.values()) == pytest.approx(1, abs=1e-12)
  beta = np.sum(np.minimum(p, q))
  assert mean_accepted(emitted) == pytest.approx(beta, abs=1e-12)
  for token in range(5):
    expected = max(p[token] - q[token], 0)
    assert emitted.get((token,), 0) == pytest.approx(expected, abs=1e-12)


def test_boxes_of_a_function():
  """A checkerboard of unequal fields, in one of two problems."""

  def function(problems, points):
    x, y = points.T
    fields = (x < 0.2).astype(int) + 2 * ((y < 0.9) ^ (x < 0.2))
    return np.where(problems == 0, 7, fields)[:, None]

  found = list(boxes.constant_boxes(function, 2, 2))
  volumes = {}
  for problem, volume, middle, (value,) in found:
    assert function(np.array([problem]), middle[None])[0, 0] == value
    key = problem, int(value)
    volumes[key] = volumes.get(key, 0) + volume
  assert volumes == pytest.approx(
      {(0, 7): 1, (1, 1): 0.18, (1, 3): 0.02, (1, 2): 0.72, (1, 0): 0.08}
  )


def test_draft_is_given_as_the_contract_says():
  """What follows a draft is junk, and point masses have none but their own."""
  seen = []

  def rule(scores, draft, uniforms):
    seen.append(jax.tree.map(lambda x: (x.shape, x.dtype), draft))
    return decide(scores, draft, uniforms)

  for kind in table_pairs.KINDS:
    tables = testing.random_tables(0, gamma=2, vocab_size=3, kind=kind)
    testing.emissions(rule, [tables])
  assert [x.probs is None for x in seen] == [False, False, False, True]
  assert [x.is_point_mass is None for x in seen] == [True, True, False, True]
  assert all(isinstance(x, contracts.Draft) for x in seen)
