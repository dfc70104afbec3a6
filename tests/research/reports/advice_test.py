# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The gamma to take, whether another may be better, and how it is said."""

import dataclasses

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

  def test_a_machine_that_changes_its_speed_changes_nothing(self):
    tokens = tokens_by_gamma()
    speeds = {1: 1.0, 4: 3.0, 8: 0.5}
    records, drifted = (
        [record(g, 2 + 0.1 * g, slower=each[g]) for g in speeds]
        for each in (dict.fromkeys(speeds, 1.0), speeds)
    )
    np.testing.assert_allclose(
        advice.expect_speedups(drifted, tokens),
        advice.expect_speedups(records, tokens),
    )

  def test_one_odd_run_does_not_count(self):
    """Drafts cost the same in all runs, so their median is taken."""
    records = [record(g) for g in (1, 3, 5)]
    odd = [*records[:2], record(5, t_draft=20.0)]
    np.testing.assert_array_equal(
        advice.expect_speedups(odd, tokens_by_gamma()),
        advice.expect_speedups(records, tokens_by_gamma()),
    )


class TestAdvise:

  @pytest.mark.parametrize('alpha', [0.3, 0.6, 0.9])
  def test_is_the_fastest_run(self, alpha):
    records = sweep(range(1, 9), tokens_by_gamma(alpha=alpha))
    found = advice.advise(records, tokens_by_gamma(alpha=alpha))
    assert found.measured.speedup == max(r.speedup for r in records)
    assert found.untried is None

  def test_a_faster_one_that_is_not_sure(self):
    unsure = record(3, speedup=3, interval=(0.9, 5.0))
    records = [record(1, speedup=1), record(2, speedup=2), unsure]
    found = advice.advise(records, tokens_by_gamma())
    assert found.measured is records[1]
    assert found.untried is None  # it was run

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

  def test_not_one_that_gains_less_than_a_run(self):
    """What parts promise does not hide what was measured."""
    records = [record(1, speedup=1.49), record(3, speedup=1.05)]
    assert advice.advise(records, tokens_by_gamma()).untried is None

  def test_nor_one_that_does_not_pay(self):
    tokens = tokens_by_gamma(alpha=0.7)
    slow = sweep((1, 8), tokens, efficiency=0.3)
    assert advice.expect_speedups(slow, tokens).argmax() not in (0, 7)
    assert advice.advise(slow, tokens).untried is None

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

  def test_a_gain(self):
    found = told(speedup=1.5, interval=(1.4, 1.6))
    assert found == (
        'use gamma 3: 1.50x measured, 1.70x by the times of the parts.'
    )

  @pytest.mark.parametrize(
      'interval', [(0.9, 1.2), (1.0, 1.3), (0.5, 1.0), (0.99, 1.01)]
  )
  def test_no_gain_is_claimed(self, interval):
    """An interval that holds 1 says nothing."""
    found = told(speedup=1.1, interval=interval)
    assert 'shows no gain' in found and 'use gamma' not in found
    assert '1.10x measured' in found

  def test_too_few_batches(self):
    found = told(speedup=1.1, interval=None)
    assert found.startswith('too few batches to say whether speculation pays')
    assert '1.10x measured' in found and 'use gamma' not in found

  def test_a_loss(self):
    found = told(speedup=0.8, interval=(0.7, 0.9))
    assert found.startswith('speculation does not pay: at best 0.80x measured')
    assert found.endswith('at gamma 3. Decode plainly, or try another drafter.')

  def test_a_gamma_that_was_not_run(self):
    untried = (5, 1.3)
    for interval in ((1.1, 1.3), (0.7, 0.9), (0.9, 1.1), None):
      found = told(untried, speedup=1.1, interval=interval)
      assert found.endswith(
          'Gamma 5 was not run and is expected to give 1.30x: run it to be'
          ' sure.'
      )
      assert 'Decode plainly' not in found


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

  def test_is_not_known(self):
    assert advice.describe_costs([self.run(7, oracle_speedup=None)]) is None
    assert advice.describe_costs([self.run(1)]) is None
