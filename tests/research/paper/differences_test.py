# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The causes of a difference multiply to the whole difference."""

import dataclasses
import math

import pytest

from speculative_t5x.research.paper import differences
from speculative_t5x.research.paper import published
from tests.research.paper import records


class TestEffects:

  def test_multiply_to_the_whole_difference(self):
    for row in published.TABLES_2_AND_4:
      record = records.measured(row.gamma, row.temperature)
      factors = [effect.factor for effect in differences.effects(row, record)]
      assert len(factors) == 9
      difference = record.speedup / row.measured
      assert math.prod(factors) == pytest.approx(difference)

  def test_words(self):
    row = published.find_row('EnDe', 'small', 0)
    words = [e.words for e in differences.effects(row, records.measured())]
    assert words == [
        "the paper's speedup is 1.08 times that of Theorem 3.8",
        "alpha is 0.05 below the paper's",
        "c is 2.5 times the paper's",
        '2.50 tokens per call, 3.14 by Equation (1)',
        'verification takes 1.5 target steps',
        'the first draft step of a block takes 0.05 target steps, later ones'
        ' 0.05',
        "the target's encoder takes 17% of plain decoding",
        'the speed of the machine changed while the parts were timed',
        'the loop reaches 80% of its bound',
    ]

  def test_each_is_told_from_the_others(self):
    """A first step of 3 later ones, and a machine that changed by a tenth."""
    row, record = published.find_row('EnDe', 'small', 0), records.measured()
    before = {e.words: e.factor for e in differences.effects(row, record)}
    changed = dataclasses.replace(
        record,
        t_draft2_ms=3 * record.t_draft2_ms,
        bound_speedup=1.1 * record.bound_speedup,
    )
    found = differences.effects(row, changed)
    first, encoders, drift = found[5:8]
    assert 'takes 0.15 target steps, later ones 0.05' in first.words
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
    record = dataclasses.replace(records.measured(), **dict.fromkeys(missing))
    row = published.find_row('EnDe', 'small', 0)
    (effect,) = differences.effects(row, record)
    assert 'the paper' in effect.words


class TestReasons:

  def test_the_three_largest(self):
    row, record = published.find_row('EnDe', 'small', 0), records.measured()
    words = [reason.words for reason in differences.reasons(row, record)]
    assert words == [
        'verification takes 1.5 target steps',
        '2.50 tokens per call, 3.14 by Equation (1)',
        'the loop reaches 80% of its bound',
    ]

  @pytest.mark.parametrize(
      'efficiency, count', [(0.96, 0), (1.04, 0), (0.9, 1)]
  )
  def test_none_below_5_percent(self, efficiency, count):
    row = published.find_row('EnDe', 'base', 1)  # EMP is 2.4, Theorem 3.8 2.35
    record = records.measured(
        5, 1.0, row.alpha, 2.82, c=row.cost_coefficient, verify_cost_ratio=1,
        encoder_s=None, loop_efficiency=efficiency,
    )  # fmt: skip
    assert len(differences.effects(row, record)) == 6
    assert len(differences.reasons(row, record)) == count
