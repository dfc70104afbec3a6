# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The gamma to take, beside the bound that a run has, and how it is said."""

import numpy as np
import pytest

from speculative_t5x import acceptance
from speculative_t5x import analysis
from speculative_t5x.walltime import advice
from speculative_t5x.walltime import measurement

STEPS = 1000
ALPHA = 0.8


def record(gamma, verify_ms=2.0, speedup=1.5, interval=(1.4, 1.6), **times):
  """A run whose parts cost the same at any gamma, but for verifying."""
  values = {'t1': 2.0, 't_draft': 0.1, 't_draft2': 0.2} | times
  return {
      'gamma': gamma,
      'encoder_s': {'target': 0.2, 'draft': 0.1},
      **{f'{name}_ms': value for name, value in values.items()},
      't_verify_ms': verify_ms,
      'baseline': {'loop_steps': STEPS},
      'speedup': speedup,
      'speedup_ci95': None if interval is None else list(interval),
  }


def tokens_a_call(max_gamma=10, alpha=ALPHA):
  return analysis.expected_tokens(alpha, np.arange(1, max_gamma + 1))


class TestTokensPerCall:

  def test_is_that_of_all_texts_together(self):
    rng = np.random.default_rng(0)
    texts = [
        acceptance.Text(np.zeros(n), rng.random(n).astype(np.float32))
        for n in (1, 5, 9)
    ]
    found = advice.tokens_per_call(texts, 6)
    for gamma in range(1, 7):
      calls = [analysis.expected_calls(t.keep_probs, gamma) for t in texts]
      assert found[gamma - 1] == pytest.approx(15 / sum(calls))
    assert len(found) == 6 and np.all(np.diff(found) >= 0)


class TestPredictSpeedups:

  def test_is_the_bound_of_runs_of_as_many_calls(self):
    records = [record(g, verify_ms=2 + 0.1 * g) for g in (1, 2, 3, 4)]
    tokens = tokens_a_call()
    found = advice.predict_speedups(records, tokens)
    expected = [
        analysis.bound_speedup(
            measurement.step_times_of(each),
            baseline_steps=STEPS,
            speculative_steps=STEPS / tokens[each['gamma'] - 1],
            gamma=each['gamma'],
        )
        for each in records
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # In whatever order they were run.
    np.testing.assert_array_equal(
        advice.predict_speedups(records[::-1], tokens), found
    )

  def test_verifying_is_interpolated(self):
    few = [record(g, verify_ms=2 + 0.1 * g) for g in (2, 6)]
    all_of_them = [record(g, verify_ms=2 + 0.1 * g) for g in (2, 3, 4, 5, 6)]
    found = advice.predict_speedups(few, tokens_a_call())
    assert len(found) == 6
    np.testing.assert_allclose(
        found, advice.predict_speedups(all_of_them, tokens_a_call())
    )

  def test_one_odd_run_does_not_count(self):
    """Other parts cost the same in all runs, so their median is taken."""
    records = [record(g) for g in (1, 2, 3)]
    odd = [*records[:2], record(3, t1=20.0)]
    np.testing.assert_array_equal(
        advice.predict_speedups(odd, tokens_a_call()),
        advice.predict_speedups(records, tokens_a_call()),
    )


class TestAdvise:

  @pytest.mark.parametrize('alpha', [0.3, 0.6, 0.9])
  def test_is_the_best_prediction(self, alpha):
    records = [record(g, verify_ms=2 + 0.15 * g) for g in range(1, 9)]
    tokens = tokens_a_call(alpha=alpha)
    predicted = advice.predict_speedups(records, tokens)
    found = advice.advise(records, tokens)
    best = int(np.argmax(predicted))
    assert found.gamma == best + 1
    assert found.predicted_speedup == predicted[best] == predicted.max()
    assert found.measured is records[best]

  def test_depends_on_alpha(self):
    records = [record(g, verify_ms=2 + 0.15 * g) for g in range(1, 9)]
    gammas = [
        advice.advise(records, tokens_a_call(alpha=a)).gamma
        for a in (0.3, 0.6, 0.9)
    ]
    assert gammas == sorted(set(gammas))

  def test_a_gamma_that_was_not_run(self):
    records = [record(g, verify_ms=2 + 0.15 * g) for g in (1, 8)]
    found = advice.advise(records, tokens_a_call(alpha=0.7))
    assert 1 < found.gamma < 8
    assert found.measured is None

  @pytest.mark.parametrize('interval', [(0.8, 0.9), (0.9, 1.1), None])
  def test_a_gain_at_another_gamma(self, interval):
    """What was predicted best does not hide what was measured faster."""
    records = [record(g, verify_ms=2 + 0.15 * g) for g in range(1, 9)]
    tokens = tokens_a_call()
    best = advice.advise(records, tokens).gamma
    records[best - 1] |= {'speedup': 1.9, 'speedup_ci95': interval}
    records[1] |= {'speedup': 1.7}
    found = advice.advise(records, tokens)
    assert found.gamma == 2 != best and found.measured is records[1]
    predicted = advice.predict_speedups(records, tokens)
    assert found.predicted_speedup == predicted[1]
    assert advice.describe(found).startswith('take gamma 2: 1.70x measured')

  def test_no_run_gains(self):
    """What is said to be the best is the fastest run."""
    records = [record(g, speedup=0.9, interval=(0.8, 0.95)) for g in (1, 2, 3)]
    records[0]['speedup'] = 0.93
    found = advice.advise(records, tokens_a_call())
    assert found.measured is records[0]
    assert 'at best 0.93x measured' in advice.describe(found)

  def test_no_gamma_pays(self):
    records = [record(g, t_draft=3.0, t_draft2=3.0) for g in (1, 2)]
    found = advice.advise(records, tokens_a_call(alpha=0.2))
    assert found.gamma == 0
    assert found.predicted_speedup < 1
    assert found.measured is records[0]


def told(predicted, measured=None, gamma=3):
  return advice.describe(advice.Advice(gamma, predicted, measured))


class TestDescribe:

  def test_a_gain(self):
    found = told(1.62, record(3, speedup=1.5, interval=(1.4, 1.6)))
    assert found == 'take gamma 3: 1.50x measured, 1.62x predicted.'

  @pytest.mark.parametrize(
      'interval', [(0.9, 1.2), (1.0, 1.3), (0.5, 1.0), (0.99, 1.01)]
  )
  @pytest.mark.parametrize('predicted', [0.8, 1.5])
  def test_no_gain_is_claimed(self, interval, predicted):
    """An interval that holds 1 says nothing."""
    found = told(predicted, record(3, speedup=1.1, interval=interval))
    assert 'shows no gain' in found and 'take gamma' not in found
    assert '1.10x measured' in found

  @pytest.mark.parametrize('predicted', [0.8, 1.5])
  def test_too_few_batches(self, predicted):
    found = told(predicted, record(3, speedup=1.1, interval=None))
    assert found.startswith('too few batches to say whether speculation pays')
    assert '1.10x measured' in found and 'take gamma' not in found

  def test_a_loss(self):
    found = told(1.2, record(3, speedup=0.8, interval=(0.7, 0.9)))
    assert found.startswith('speculation does not pay here: at best 0.80x')
    assert found.endswith('Decode plainly.')

  def test_a_gamma_that_was_not_run(self):
    found = told(1.3)
    assert found == 'take gamma 3: 1.30x predicted; run it to be sure.'
    assert 'measured' not in found

  def test_none_pays_and_none_was_run(self):
    found = told(0.9, gamma=0)
    assert found.startswith('speculation does not pay here: at best 0.90x')
    assert 'measured' not in found and 'take gamma' not in found

  def test_a_gain_that_was_not_predicted(self):
    """What was measured counts, and there is no gamma 0."""
    measured = record(2, speedup=1.1, interval=(1.05, 1.15))
    found = told(0.98, measured, gamma=0)
    assert found == 'take gamma 2: 1.10x measured, 0.98x predicted.'
