# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run records give alphas for Table 3, and points for figures."""

import dataclasses

import pytest

from speculative_t5x.paper import points
from speculative_t5x.reports import runs
from tests.paper import records

_NAME = 'bulletins_ende: draft/checkpoint_4, T=0, bfloat16'


class TestCurveLabel:

  def test_merges_rates_and_temperatures(self):
    expected = 'draft/checkpoint_4 for target/checkpoint_2, bfloat16, simulated'
    for record in (
        records.simulated(),
        records.simulated(0.5, temperature=1.0),
    ):
      assert points.curve_label(record) == expected

  def test_measured_runs_are_told_apart_by_temperature(self):
    for record in (records.measured(), records.measured(temperature=1.0)):
      assert points.curve_label(record) == runs.label(record)


class TestAlphas:

  def test_one_for_all_gammas(self):
    swept = [records.measured(gamma) for gamma in (1, 3)]
    plain = dataclasses.replace(records.measured(), alpha=None, drafter=None)
    other = records.changed(records.measured(alpha=0.6), 'target', name='b/2')
    found = points.alphas([plain, *swept, other])
    assert [(name, alpha.value) for name, _, alpha in found] == [
        (f'{_NAME}, for target/checkpoint_2', 0.7), (f'{_NAME}, for b/2', 0.6)
    ]  # fmt: skip

  def test_two_of_one_label(self):
    found = [records.measured(), records.measured(alpha=0.6)]
    with pytest.raises(ValueError, match='twice, with alpha 0.7 and 0.6'):
      points.alphas(found)


class TestPoints:

  def test_values(self):
    record = records.measured(3, 1.0, operations_factor=1.4)
    (point,) = points.from_records([record])
    assert point == points.Point(
        label='bulletins_ende: draft/checkpoint_4, T=1, bfloat16',
        alpha=0.7,
        gamma=3,
        cost_coefficient=records.COST,
        tokens_per_call=2.5,
        speedup=record.speedup,
        speedup_ci95=record.speedup_ci95,
        operations_factor=1.4,
    )

  @pytest.mark.parametrize(
      'key',
      ['drafter', 'gamma', 'alpha', 'c', 'tokens_per_target_call', 'speedup'],
  )
  def test_incomplete_records_are_left_out(self, key):
    complete = records.measured()
    incomplete = dataclasses.replace(complete, **{key: None})
    assert len(points.from_records([complete, incomplete])) == 1
    assert points.from_records([incomplete]) == []

  @pytest.mark.parametrize('value', [float('nan'), float('inf')])
  @pytest.mark.parametrize('key', ['c', 'tokens_per_target_call', 'speedup'])
  def test_numbers_that_are_not_finite_are_left_out(self, key, value):
    assert points.from_records([records.measured(**{key: value})]) == []

  def test_an_alpha_that_is_no_number_is_left_out(self):
    nan = float('nan')
    for value in (nan, None):
      record = records.changed(records.measured(), 'alpha', value=value)
      assert points.from_records([record]) == []
    assert points.from_records([records.simulated(nan)]) == []

  @pytest.mark.parametrize('factor', [None, float('nan')])
  def test_operations_and_an_interval_may_be_missing(self, factor):
    record = records.measured(speedup_ci95=None, operations_factor=factor)
    (point,) = points.from_records([record])
    assert point.speedup_ci95 is None and point.operations_factor is None

  def test_a_simulated_rate_is_alpha(self):
    (point,) = points.from_records([records.simulated(0.75)])
    assert point.alpha == 0.75 and point.label.endswith(' 0.75')

  def test_labels_of_the_callers(self):
    record = records.measured()
    (point,) = points.from_records([record], label=lambda r: r.task)
    assert point.label == 'bulletins_ende'

  def test_labels_are_told_apart(self):
    other = records.changed(records.measured(), 'device', kind='cpu')
    found = points.from_records(
        [records.measured(), other], label=lambda r: 'a'
    )
    assert [point.label for point in found] == ['a, on TPU v5', 'a, on cpu']
