# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Verdicts and reasons of run records."""

import math

import pytest

from speculative_t5x.paper import published
from speculative_t5x.paper import readings
from tests.paper import records


class TestVerdict:

  @pytest.mark.parametrize(
      'interval, verdict',
      [
          ([1.01, 1.2], 'faster'),
          ([0.99, 1.2], 'no difference shown'),
          ([1.004, 1.2], 'no difference shown'),  # is printed as 1.00
          ([0.8, 0.996], 'no difference shown'),
          ([0.8, 0.99], 'slower'),
          (None, 'open, no interval'),
      ],
  )
  def test_is_by_the_interval(self, interval, verdict):
    record = records.measured(speedup=1.1, speedup_ci95=interval)
    assert readings.verdict(record) == verdict

  def test_of_a_run_that_was_not_timed(self):
    record = records.measured(speedup=None, speedup_ci95=None)
    assert readings.verdict(record) == 'not measured'


class TestAlpha:

  def test_measured(self):
    assert readings.alpha(records.measured(alpha=0.6)) == 0.6

  def test_dialled(self):
    """The models' own alpha says nothing of such a run."""
    record = records.measured(alpha=0.1, simulated_acceptance=0.75)
    assert readings.alpha(record) == 0.75

  def test_a_rate_of_0_is_dialled_too(self):
    record = records.measured(simulated_acceptance=0.0)
    assert readings.is_dialled(record) and readings.alpha(record) == 0.0

  def test_unknown(self):
    assert readings.alpha(records.measured() | {'alpha': None}) is None


class TestInTurns:

  @pytest.mark.parametrize('gamma', [1, 7])
  def test_over_the_sum_of_the_parts(self, gamma):
    assert readings.in_turns(records.measured(gamma)) == pytest.approx(1.1)

  def test_unknown(self):
    assert readings.in_turns(records.measured(t_call_ms=None)) is None


class TestEffects:

  @pytest.mark.parametrize('row', published.TABLES_2_AND_4)
  def test_multiply_to_the_whole_difference(self, row):
    record = records.measured(row.gamma, row.temperature)
    factors = [effect.factor for effect in readings.effects(row, record)]
    assert len(factors) == 9
    difference = record['speedup'] / row.measured
    assert math.prod(factors) == pytest.approx(difference)

  def test_words(self):
    row = published.row('EnDe', 'small', 0)
    words = [e.words for e in readings.effects(row, records.measured())]
    assert words == [
        "the paper's own speed is 1.08 times Theorem 3.8",
        "alpha is 0.05 below the paper's",
        "c is 2.5 times the paper's",
        'a call yields 2.50 tokens, by Equation (1) 3.14',
        'verifying costs 1.5 single steps',
        "a block's first draft step costs 0.05 target steps, later ones 0.05",
        "the target's encoder takes 17% of plain decoding",
        'the machine changed its speed while the parts were timed',
        'the loop reaches 80% of its bound',
    ]

  def test_each_is_told_from_the_others(self):
    """A first step of 3 later ones, and a machine that changed by a tenth."""
    row, record = published.row('EnDe', 'small', 0), records.measured()
    before = {e.words: e.factor for e in readings.effects(row, record)}
    record['t_draft2_ms'] *= 3
    record['bound_speedup'] *= 1.1
    found = readings.effects(row, record)
    first, encoders, drift = found[5:8]
    assert 'step costs 0.15 target steps, later ones 0.05' in first.words
    assert first.factor == pytest.approx((7 * 0.05 + 1.5) / (9 * 0.05 + 1.5))
    # The encoder is a smaller share of a longer block's.
    assert 1 > encoders.factor > before[encoders.words]
    assert before[drift.words] == pytest.approx(1) and drift.factor > 1.1
    others = {e.words: e.factor for e in found[:5]}
    assert others == {words: before[words] for words in others}

  def test_what_was_not_measured_is_no_effect(self):
    missing = (
        'alpha', 'c', 'tokens_per_target_call', 'verify_cost_ratio',
        'encoder_s', 'loop_efficiency',
    )  # fmt: skip
    record = records.measured() | dict.fromkeys(missing)
    row = published.row('EnDe', 'small', 0)
    (effect,) = readings.effects(row, record)
    assert 'the paper' in effect.words


class TestReasons:

  def test_the_three_largest(self):
    row, record = published.row('EnDe', 'small', 0), records.measured()
    words = [reason.words for reason in readings.reasons(row, record)]
    assert words == [
        'verifying costs 1.5 single steps',
        'a call yields 2.50 tokens, by Equation (1) 3.14',
        'the loop reaches 80% of its bound',
    ]

  @pytest.mark.parametrize(
      'efficiency, count', [(0.96, 0), (1.04, 0), (0.9, 1)]
  )
  def test_none_below_5_percent(self, efficiency, count):
    row = published.row('EnDe', 'base', 1)  # EMP is 2.4, Theorem 3.8 2.35
    record = records.measured(5, 1.0, row.alpha, 2.82, c=row.cost_coefficient)
    record |= {'verify_cost_ratio': 1, 'encoder_s': None}
    record['loop_efficiency'] = efficiency
    assert len(readings.effects(row, record)) == 6
    assert len(readings.reasons(row, record)) == count


class TestModelName:

  @pytest.mark.parametrize(
      'model, name',
      [
          ({'name': 'a/b', 'num_params': 5}, 'a/b'),
          ({'name': None, 'kind': 'model', 'num_params': 77e6}, 'model 77M'),
          ({'name': None, 'kind': 'bigram', 'num_params': None}, 'bigram'),
          ({'name': None, 'num_params': 11e9}, 'no checkpoint 11B'),
      ],
  )
  def test_models_without_checkpoints_are_told_apart(self, model, name):
    assert readings.model_name(model) == name
