# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the closed forms, exact counts and estimators.

Numbers of the paper are literals here, by the name of their table; those that
the paper does not print were computed from its formulas by hand.
"""


import numpy as np
import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import intervals
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import theory

# gamma, alpha and c of Tables 2 and 4, then what follows from them: the factor
# of Theorem 3.8, the best gamma, its factor, and the tokens of Equation (1).
TABLES_2_AND_4 = (
    (7, 0.75, 0.02, '3.157', 9, '3.199', '3.60'),
    (7, 0.80, 0.04, '3.251', 9, '3.282', '4.16'),
    (7, 0.82, 0.11, '2.497', 6, '2.512', '4.42'),
    (7, 0.62, 0.02, '2.258', 6, '2.267', '2.57'),
    (5, 0.68, 0.04, '2.347', 6, '2.351', '2.82'),
    (3, 0.71, 0.11, '1.934', 4, '1.963', '2.57'),
    (5, 0.65, 0.02, '2.402', 7, '2.426', '2.64'),
    (5, 0.73, 0.04, '2.619', 7, '2.660', '3.14'),
    (3, 0.74, 0.11, '2.025', 4, '2.078', '2.69'),
    (5, 0.53, 0.02, '1.891', 5, '1.891', '2.08'),
    (3, 0.55, 0.04, '1.803', 4, '1.819', '2.02'),
    (3, 0.56, 0.11, '1.541', 3, '1.541', '2.05'),
)


ALPHAS = np.arange(21) / 20
COSTS = np.arange(25) / 20  # includes values equal to alphas


@pytest.mark.parametrize(
    'gamma, alpha, cost, factor, best, best_factor, tokens', TABLES_2_AND_4
)
def test_tables_2_and_4(
    gamma, alpha, cost, factor, best, best_factor, tokens
):
  assert f'{theory.walltime_factor(alpha, gamma, cost):.3f}' == factor
  assert theory.optimal_gamma(alpha, cost) == best
  assert f'{theory.walltime_factor(alpha, best, cost):.3f}' == best_factor
  assert f'{theory.expected_tokens(alpha, gamma):.2f}' == tokens


class TestExpectedTokens:

  @pytest.mark.parametrize('gamma', [1, 2, 7, 40])
  def test_is_the_sum_of_powers(self, gamma):
    """This includes alpha 1, where the paper's quotient is 0 / 0."""
    for alpha in (*ALPHAS, 1e-300, 1 - 1e-12, np.nextafter(1, 0)):
      powers = alpha ** np.arange(gamma + 1)
      found = theory.expected_tokens(alpha, gamma)
      np.testing.assert_allclose(found, powers.sum(), rtol=1e-14)

  def test_limits(self):
    assert theory.expected_tokens(0.75, np.inf) == 4
    assert theory.expected_tokens(1, np.inf) == np.inf
    assert theory.expected_tokens(0, np.inf) == 1


class TestOptimalGamma:

  @pytest.mark.parametrize('max_gamma', [1, 8, 64])
  def test_best_of_all_gammas(self, max_gamma):
    # No alpha equals a cost, and no two gammas are equally good.
    alphas, costs = (np.arange(50)[:, None] + 0.37) / 50, COSTS[1:]
    factors = theory.walltime_factor(
        alphas[..., None], np.arange(1, max_gamma + 1), costs[..., None]
    )
    factors = np.insert(factors, 0, 1, axis=-1)  # gamma 0, plain decoding
    np.testing.assert_array_equal(
        theory.optimal_gamma(alphas, costs, max_gamma),
        np.argmax(factors, axis=-1),
    )

  def test_is_max_gamma_without_an_optimum(self):
    assert theory.optimal_gamma(1, 0) == 64
    assert theory.optimal_gamma(1, 0.5, max_gamma=100) == 100
    assert theory.optimal_gamma(0.5, 0, max_gamma=64) == 64
    assert theory.optimal_gamma(1, 1) == 0
    assert theory.optimal_gamma(0, 0) == 0


def test_seconds_of_ideal_loops_by_hand():
  times = step_times.PartTimes(0.5, 0.25, 10.0, 12.0, 1.0, 2.0)
  assert times.plain_seconds(100) == pytest.approx(0.5 + 1)
  # 20 calls, each of a first draft token and three others.
  speculative_s = times.speculative_seconds(80, [20])
  assert speculative_s == pytest.approx(0.75 + 20 * (2 + 3 * 1 + 12) / 1000)


def _covers(interval, truth):
  return interval[0] <= truth <= interval[1]


class TestRatioInterval:

  @pytest.mark.parametrize('num_pairs', [6, 8, 32])
  @pytest.mark.parametrize('is_disturbed', [False, True])
  def test_covers_the_truth(self, num_pairs, is_disturbed):
    """Also where one batch in seven takes several times as long."""
    rng = np.random.default_rng(num_pairs)
    covered = []
    for _ in range(1500):
      lengths = np.exp(rng.normal(0, 0.35, num_pairs))
      if is_disturbed:
        hits = rng.random((2, num_pairs)) < 0.15
        noise = 1 + hits * rng.exponential(1.5, (2, num_pairs))
      else:
        noise = np.exp(rng.normal(0, 0.1, (2, num_pairs)))
      found = intervals.ratio_interval(*(lengths * noise))
      covered.append(_covers(found, 1))
    assert 0.925 < np.mean(covered) < 0.99

  def test_of_products_is_that_of_their_ratio(self):
    """What two factors have in common adds nothing."""
    rng = np.random.default_rng(0)
    a, b, common = rng.gamma(9.0, size=(3, 12))
    found = intervals.ratio_interval([a, common], [b, common])
    assert found == pytest.approx(intervals.ratio_interval(a, b))
    assert intervals.ratio_interval([a, b], [a, b]) == pytest.approx((1, 1))

  def test_without_anything_accepted(self):
    assert intervals.ratio_interval([0] * 6, [2] * 6) == (0, 0)

  def test_few_pairs_have_no_interval(self):
    """All lie on one side with chance 1/16 for 5 pairs, 1/32 for 6."""
    for count in range(1, 6):
      assert intervals.ratio_interval([1] * count, [2] * count) is None
    assert intervals.ratio_interval([1] * 6, [2] * 6) == pytest.approx(
        (0.5, 0.5)
    )


class TestEstimateAlpha:

  def test_weights_tokens_equally(self):
    found = intervals.estimate_alpha([[1.0, 0.5, 0.5], [0.0]])
    assert found == run_record.Alpha(0.5, None, 4)

  def test_texts_are_the_pairs(self):
    """Tokens of one text are no more than one text."""
    short = intervals.estimate_alpha([[1.0], [0.5], [0.0]] * 4)
    long = intervals.estimate_alpha([[1.0] * 9, [0.5] * 9, [0.0] * 9] * 4)
    assert short.value == long.value == 0.5
    assert short.ci95 == pytest.approx(long.ci95)
    assert short.ci95[0] > 0.25 and short.ci95[1] < 1

  def test_is_at_most_one(self):
    assert intervals.estimate_alpha([[1.0], [0.2]] * 3).ci95[1] == 1.0


# One line per argument that is checked.
_BAD = {
    'alpha must lie': lambda: theory.expected_tokens([0.5, np.nan], 2),
    'gamma must be whole': lambda: theory.walltime_factor(0.5, [3, 0], 0),
    'gamma must be finite': lambda: theory.operations_factor(0.5, np.inf, 0),
    'cost_coefficient must': lambda: theory.optimal_gamma(0.5, [0, -0.1]),
    'ops_coefficient must': lambda: theory.operations_factor(0.5, 2, np.inf),
}


@pytest.mark.parametrize('message', _BAD)
def test_bad_input(message):
  with pytest.raises(ValueError, match=message):
    _BAD[message]()
