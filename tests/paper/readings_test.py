# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Verdicts, reasons and points of run records."""

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
    assert len(factors) == 7
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
        "the target's encoder takes 17% of plain decoding",
        'the loop reaches 80% of its bound',
    ]

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


class TestPoints:

  def test_values(self):
    record = records.measured(3, 1.0, operations_factor=1.4)
    (point,) = readings.points([record])
    assert point == readings.Point(
        label='draft/checkpoint_4, T=1',
        alpha=0.7,
        gamma=3,
        cost_coefficient=records.COST,
        tokens_per_call=2.5,
        speedup=record['speedup'],
        speedup_ci95=tuple(record['speedup_ci95']),
        operations_factor=1.4,
    )

  @pytest.mark.parametrize(
      'key',
      ['drafter', 'gamma', 'alpha', 'c', 'tokens_per_target_call', 'speedup'],
  )
  def test_incomplete_records_are_left_out(self, key):
    complete, incomplete = records.measured(), records.measured() | {key: None}
    assert len(readings.points([complete, incomplete])) == 1
    assert readings.points([incomplete]) == []

  def test_operations_and_an_interval_may_be_missing(self):
    record = records.measured(speedup_ci95=None, operations_factor=None)
    (point,) = readings.points([record])
    assert point.speedup_ci95 is None and point.operations_factor is None

  def test_a_dialled_rate_is_in_the_label(self):
    record = records.measured(simulated_acceptance=0.75, batch_size=8)
    record['alpha'] = None
    (point,) = readings.points([record])
    assert point.label == 'draft/checkpoint_4, T=0, batch 8, dialled 0.75'
    assert point.alpha == 0.75

  def test_labels_of_the_callers(self):
    record = records.measured()
    (point,) = readings.points([record], label=lambda r: r['task'])
    assert point.label == 'bulletins_ende'


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
