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


def record(gamma, verify_ms=2.0, speedup=1.5, interval=(1.4, 1.6)):
  """Return a run whose parts cost the same at any gamma, but for verifying."""
  return run_record.RunRecord(
      gamma=gamma,
      num_examples=64,
      batch_size=1,
      encoder_s=run_record.EncoderSeconds(0.2, 0.1),
      bound_speedup=1.7,
      t1_ms=2.0,
      t_draft_ms=0.1,
      t_draft2_ms=0.2,
      t_verify_ms=verify_ms,
      baseline=run_record.from_dict({'loop_steps': STEPS}, run_record.PlainRun),
      speedup=speedup,
      speedup_ci95=interval,
  )


def tokens_by_gamma(max_gamma=10, alpha=ALPHA):
  return theory.expected_tokens(alpha, np.arange(1, max_gamma + 1))


def test_tokens_per_call_are_of_all_texts_together():
  rng = np.random.default_rng(0)
  texts = [
      acceptance.Text(
          betas=np.zeros(n),
          acceptance_probs=rng.random(n).astype(np.float32),
          lenient_betas=np.zeros((4, n)),
          control_betas=np.zeros(n),
      )
      for n in (1, 5, 9)
  ]
  found = advice.tokens_per_call(texts, 6)
  for gamma in range(1, 7):
    calls = [theory.expected_calls(t.acceptance_probs, gamma) for t in texts]
    assert found[gamma - 1] == pytest.approx(15 / sum(calls))
  assert len(found) == 6 and np.all(np.diff(found) >= 0)


def sweep(gammas, tokens, efficiency=1.0):
  """Run as fast as their parts allow, or by a factor slower."""
  records = [record(g, verify_ms=2 + 0.1 * g) for g in gammas]
  bounds = [
      part_sums.bound_speedup(
          walltimes.step_times_of(each),
          baseline_steps=STEPS,
          speculative_steps=STEPS / tokens[each.gamma - 1],
          gamma=each.gamma,
      )
      for each in records
  ]
  return [
      dataclasses.replace(each, speedup=efficiency * bound)
      for each, bound in zip(records, bounds)
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

  @pytest.mark.parametrize('alpha', [0.3, 0.9])
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

  def test_a_gain_that_is_shown_counts_more_than_a_larger_one(self):
    uncertain = record(1, speedup=1.5, interval=(0.9, 2.1))
    shown = record(2, speedup=1.2, interval=(1.1, 1.3))
    found = advice.advise([uncertain, shown], tokens_by_gamma())
    assert found.measured is shown

  def test_a_gamma_that_was_not_run(self):
    tokens = tokens_by_gamma(alpha=0.7)
    every = sweep(range(1, 9), tokens)
    best = max(every, key=lambda r: r.speedup)
    records = sweep((best.gamma - 1, best.gamma + 1), tokens)
    found = advice.advise(records, tokens)
    assert found.measured is max(records, key=lambda r: r.speedup)
    assert found.untried == (best.gamma, pytest.approx(best.speedup))
    # What a fixed length of drafts would gain says nothing of a policy.
    adaptive = [
        dataclasses.replace(each, gamma_policy='schedule(1, 2)')
        for each in records
    ]
    assert advice.advise(adaptive, tokens).untried is None


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
def test_no_gain_is_claimed_that_was_not_measured(interval, words):
  run = record(3, speedup=1.1, interval=interval)
  found = advice.describe_advice(advice.Advice(run, None))
  assert re.search(words, found) and found.count('1.10x') == 1
  more = advice.describe_advice(advice.Advice(run, (7, 1.5)))
  assert 'Gamma 7 was not run and is expected to give 1.50x' in more


def test_costs_are_of_the_largest_gamma():
  times = {'c': 0.05, 't_width_ms': (2.0, 2.8, 3.0, 3.5), 'oracle_speedup': 2.5}
  runs = [dataclasses.replace(record(gamma), **times) for gamma in (7, 3)]
  text = advice.describe_costs(runs)
  assert 'up to gamma 7 would give 2.50x' in text
  assert ' c=0.05, ' in text
  assert 'verify_cost_ratio={2: 1.40, 4: 1.50, 8: 1.75}' in text
