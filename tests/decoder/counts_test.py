# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the counts and the rates of a run."""

import numpy as np
import pytest

from speculative_t5x.decoder import counts
from speculative_t5x.decoder import token_decoder
from speculative_t5x.speculation import outcome as outcome_lib


def decoded(accepted, tested, drafted, **values) -> token_decoder.Decoded:
  """Returns what a run gives, with these counts per row."""
  num_rows = len(accepted)
  column = lambda name: np.array(values.get(name, [0] * num_rows), np.int32)
  return token_decoder.Decoded(
      sequences=np.zeros((num_rows, 9), np.int32),
      num_tokens=column('num_tokens'),
      log_probs=np.zeros(num_rows, np.float32),
      num_calls=column('num_calls'),
      num_steps=np.int32(values['num_steps']),
      num_draft_steps=np.int32(0),
      calls_by_width=np.array([0]),
      statistics=outcome_lib.Statistics(
          accepted_histogram=np.array(accepted, np.int32),
          tested_histogram=np.array(tested, np.int32),
          drafted_histogram=np.array(drafted, np.int32),
          num_computed=column('num_computed'),
          num_cut_short=column('num_cut_short'),
      ),
  )


def _total():
  """Returns the counts of two batches, gamma 2.

  The calls of the first row have 2, 0 and 1 accepted tokens; the last is cut
  short after its only draft token. The second row has 1 of 2, and the third is
  padding. The fourth, in a batch of its own, has 2 of 2.
  """
  first = decoded(
      accepted=[[1, 1, 1], [0, 1, 0], [0, 0, 0]],
      tested=[[0, 2, 1], [0, 0, 1], [0, 0, 0]],
      drafted=[[0, 1, 2], [0, 0, 1], [0, 0, 0]],
      num_tokens=[5, 2, 0],
      num_calls=[3, 1, 0],
      num_computed=[6, 2, 0],
      num_cut_short=[1, 0, 0],
      num_steps=3,
  )
  second = decoded(
      accepted=[[0, 0, 1]],
      tested=[[0, 0, 1]],
      drafted=[[0, 0, 1]],
      num_tokens=[3],
      num_calls=[1],
      num_computed=[2],
      num_cut_short=[0],
      num_steps=3,
  )
  return counts.total([first, second])


class TestCounts:

  def test_run(self):
    assert counts.count_run(_total()) == {
        'tokens': 10,
        'target_calls': 5,
        'loop_steps': 6,
    }

  def test_speculation(self):
    assert counts.count_speculation(_total()) == {
        'drafted': 9,
        'drafted_computed': 10,
        'tested': 8,
        'accepted': 6,
        'cut_short': 1,
        'acceptance_histogram': (1, 2, 2),
        'per_position_acceptance': (4 / 5, 2 / 4),
    }

  def test_rates(self):
    speculation = counts.count_speculation(_total())
    rates = counts.acceptance_rates(counts.count_run(_total()) | speculation)
    assert rates == {
        'draft_acceptance_rate': 6 / 9,
        'accepted_per_tested': 6 / 8,
        'mean_acceptance_length': 1 + 6 / 5,
        'tokens_per_target_call': 10 / 5,
    }

  def test_padded_share(self):
    """Of 3 rows times 3 steps and 1 times 3, five were used."""
    assert counts.padded_share(_total()) == pytest.approx(1 - 5 / 12)

  def test_parts_add_up(self):
    batch = decoded(
        [[1, 0, 1]], [[0, 1, 1]], [[0, 1, 1]], num_tokens=[3], num_steps=2
    )
    part = counts.total([batch])
    assert counts.add([part, part]) == counts.total([batch, batch])

  def test_per_example(self):
    """Of two examples with two rows each, and one in a batch of its own."""
    first = decoded(
        accepted=[[1, 1, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1]],
        tested=[[0, 2, 1], [0, 0, 1], [0, 0, 0], [0, 0, 1]],
        drafted=[[0, 1, 2], [0, 0, 1], [0, 0, 0], [0, 0, 1]],
        num_tokens=[5, 2, 0, 3],
        num_calls=[3, 1, 0, 1],
        num_computed=[6, 2, 0, 2],
        num_steps=3,
    )
    second = decoded(
        accepted=[[1, 0, 0], [0, 1, 0]],
        tested=[[0, 1, 0], [0, 0, 1]],
        drafted=[[0, 0, 1], [0, 0, 1]],
        num_tokens=[1, 2],
        num_calls=[1, 1],
        num_computed=[2, 2],
        num_steps=1,
    )
    found = counts.per_example([first, second], 2)
    assert {name: column.tolist() for name, column in found.items()} == {
        'tokens': [7, 3, 3],
        'target_calls': [4, 1, 2],
        'drafted': [7, 2, 4],
        'drafted_computed': [8, 2, 4],
        'tested': [6, 2, 3],
        'accepted': [4, 2, 1],
        'tested_per_position': [[4, 2], [1, 1], [2, 1]],
        'accepted_per_position': [[3, 1], [1, 1], [1, 0]],
    }
    plain = counts.per_example([first.replace(statistics=None)], 4)
    assert {name: column.tolist() for name, column in plain.items()} == {
        'tokens': [10],
        'target_calls': [5],
    }

  def test_nothing_decoded(self):
    batch = decoded([[0, 0, 0]], [[0, 0, 0]], [[0, 0, 0]], num_steps=0)
    nothing = counts.total([batch])
    speculation = counts.count_speculation(nothing)
    assert speculation['per_position_acceptance'] == (None, None)
    rates = counts.acceptance_rates(counts.count_run(nothing) | speculation)
    assert set(rates.values()) == {None}
    assert counts.padded_share(nothing) is None
