# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The gamma to take, whether another may be better, and how it is said."""

import dataclasses
import re

import numpy as np
import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import advice
from speculative_t5x.speculation import theory

STEPS = 1000
ALPHA = 0.8


def record(
    gamma, verify_ms=2.0, speedup=1.5, interval=(1.4, 1.6), slower=1, **times
):
  """A run whose parts cost the same at any gamma, but for verifying.

  Args:
    gamma: of the run.
    verify_ms: the cost of verifying.
    speedup: as measured.
    interval: of it.
    slower: how much slower the machine was.
    **times: of other parts.
  """
  values = {'t1': 2.0, 't_draft': 0.1, 't_draft2': 0.2} | times
  values = {name: slower * value for name, value in values.items()}
  verify_ms *= slower
  return run_record.RunRecord(
      gamma=gamma,
      encoder_s=run_record.EncoderSeconds(slower * 0.2, slower * 0.1),
      bound_speedup=1.7,
      **{f'{name}_ms': value for name, value in values.items()},
      t_verify_ms=verify_ms,
      baseline=run_record.from_dict({'loop_steps': STEPS}, run_record.PlainRun),
      speedup=speedup,
      speedup_ci95=interval,
  )


def tokens_by_gamma(max_gamma=10, alpha=ALPHA):
  return theory.expected_tokens(alpha, np.arange(1, max_gamma + 1))


class TestTokensPerCall:

  def test_is_that_of_all_texts_together(self):
    rng = np.random.default_rng(0)
    texts = [
        acceptance.Text(np.zeros(n), rng.random(n).astype(np.float32))
        for n in (1, 5, 9)
    ]
    found = advice.tokens_per_call(texts, 6)
    for gamma in range(1, 7):
      calls = [theory.expected_calls(t.acceptance_probs, gamma) for t in texts]
      assert found[gamma - 1] == pytest.approx(15 / sum(calls))
    assert len(found) == 6 and np.all(np.diff(found) >= 0)


def bounds(records, tokens):
  """Of runs of as many calls as the tokens say."""
  return [
      part_sums.bound_speedup(
          walltimes.step_times_of(each),
          baseline_steps=STEPS,
          speculative_steps=STEPS / tokens[each.gamma - 1],
          gamma=each.gamma,
      )
      for each in records
  ]


def sweep(gammas, tokens, efficiency=1.0):
  """Runs as fast as their parts allow, or by a factor slower."""
  records = [record(g, verify_ms=2 + 0.1 * g) for g in gammas]
  return [
      dataclasses.replace(each, speedup=efficiency * bound)
      for each, bound in zip(records, bounds(records, tokens))
  ]


class TestExpectSpeedups:

  def test_of_runs_are_theirs(self):
    """In whatever order they were run, and whatever their parts say."""
    records = [record(g, speedup=1 + 0.1 * g) for g in (1, 4, 2)]
    found = advice.expect_speedups(records, tokens_by_gamma())
    assert len(found) == 4
    np.testing.assert_allclose(found[[0, 3, 1]], [1.1, 1.4, 1.2])
    np.testing.assert_array_equal(
        advice.expect_speedups(records[::-1], tokens_by_gamma()), found
    )

  @pytest.mark.parametrize('efficiency', [1.0, 0.8])
  def test_between_runs_the_parts_tell(self, efficiency):
    tokens = tokens_by_gamma()
    few = sweep((2, 6), tokens, efficiency)
    every = sweep(range(2, 7), tokens, efficiency)
    np.testing.assert_allclose(
        advice.expect_speedups(few, tokens)[1:],
        [each.speedup for each in every],
    )


class TestAdvise:

  @pytest.mark.parametrize('alpha', [0.3, 0.6, 0.9])
  def test_is_the_fastest_run(self, alpha):
    records = sweep(range(1, 9), tokens_by_gamma(alpha=alpha))
    found = advice.advise(records, tokens_by_gamma(alpha=alpha))
    assert found.measured.speedup == max(r.speedup for r in records)
    assert found.untried is None

  def test_no_run_gains(self):
    speedups = {1: 0.93, 2: 0.9, 3: 0.9}
    records = [
        record(gamma, speedup=speedup, interval=(0.8, 0.95))
        for gamma, speedup in speedups.items()
    ]
    assert advice.advise(records, tokens_by_gamma()).measured is records[0]

  def test_a_gamma_that_was_not_run(self):
    tokens = tokens_by_gamma(alpha=0.7)
    records = sweep((1, 8), tokens)
    found = advice.advise(records, tokens)
    gamma, speedup = found.untried
    every = sweep(range(1, 9), tokens)
    assert found.measured is max(records, key=lambda r: r.speedup)
    assert speedup == pytest.approx(max(r.speedup for r in every))
    assert every[gamma - 1].speedup == pytest.approx(speedup)

  def test_none_for_drafts_of_other_lengths(self):
    """What a fixed length of drafts would gain says nothing of a policy."""
    tokens = tokens_by_gamma(alpha=0.7)
    records = [
        dataclasses.replace(each, gamma_policy='schedule(1, 2)')
        for each in sweep((1, 8), tokens)
    ]
    found = advice.advise(records, tokens)
    assert found.measured is max(records, key=lambda r: r.speedup)
    assert found.untried is None


def told(untried=None, **changes):
  return advice.describe(advice.Advice(record(3, **changes), untried))


class TestDescribe:

  @pytest.mark.parametrize(
      ('interval', 'words'),
      [
          ((1.02, 1.2), 'use gamma 3: 1.10x measured'),
          ((0.8, 0.9), 'does not pay: at best 1.10x .* Decode plainly'),
          ((1.0, 1.3), 'shows no gain: at best 1.10x measured'),
          ((0.5, 1.0), 'shows no gain: at best 1.10x measured'),
          (None, 'too few batches .*: at best 1.10x measured'),
      ],
  )
  def test_no_gain_is_claimed_that_was_not_measured(self, interval, words):
    found = told(speedup=1.1, interval=interval)
    assert re.search(words, found) and found.count('1.10x') == 1
    more = told((7, 1.5), speedup=1.1, interval=interval)
    assert 'Gamma 7 was not run and is expected to give 1.50x' in more


class TestDescribeCosts:

  @staticmethod
  def run(gamma, **values):
    widths = (2.0, 2.8, 3.0, 3.5)
    settings = {'c': 0.05, 't_width_ms': widths, 'oracle_speedup': 2.5}
    return dataclasses.replace(record(gamma), **(settings | values))

  def test_is_of_the_largest_gamma(self):
    other = self.run(3, oracle_speedup=2.1)
    text = advice.describe_costs([self.run(7), other])
    assert 'up to gamma 7 would give 2.50x' in text
    assert '--gin.COST_COEFFICIENT=0.050' in text
    assert "--gin.VERIFY_COST_RATIO='{2: 1.40, 4: 1.50, 8: 1.75}'" in text
