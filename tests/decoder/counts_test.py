# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the counts and the rates of a run."""

import numpy as np
import pytest

from speculative_t5x.decoder import counts
from speculative_t5x.decoder import report
from speculative_t5x.decoder import results
from speculative_t5x.speculation import outcome as outcome_lib


def decoded(accepted, tested, drafted, **values) -> report.Report:
  """Return what a run gives, with these counts per row."""
  num_rows = len(accepted)
  column = lambda name: np.array(values.get(name, [0] * num_rows), np.int32)
  return report.Report(
      np.ones(num_rows, bool),
      sequences=np.zeros((num_rows, 9), np.int32),
      num_tokens=column('num_tokens'),
      log_probs=np.zeros(num_rows, np.float32),
      num_calls=column('num_calls'),
      work=None,
      statistics=outcome_lib.Statistics(
          accepted_histogram=np.array(accepted, np.int32),
          tested_histogram=np.array(tested, np.int32),
          drafted_histogram=np.array(drafted, np.int32),
          num_computed=column('num_computed'),
          num_cut_short=column('num_cut_short'),
      ),
  )


# Gamma 2. The calls of the first row have 2, 0 and 1 accepted tokens; the last
# is cut short after its only draft token. The second row has 1 of 2, the third
# is padding, and the last has 2 of 2.
FIRST = decoded(
    accepted=[[1, 1, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1]],
    tested=[[0, 2, 1], [0, 0, 1], [0, 0, 0], [0, 0, 1]],
    drafted=[[0, 1, 2], [0, 0, 1], [0, 0, 0], [0, 0, 1]],
    num_tokens=[5, 2, 0, 3],
    num_calls=[3, 1, 0, 1],
    num_computed=[6, 2, 0, 2],
    num_cut_short=[1, 0, 0, 0],
)
# None and 1 of 2 draft tokens.
SECOND = decoded(
    accepted=[[1, 0, 0], [0, 1, 0]],
    tested=[[0, 1, 0], [0, 0, 1]],
    drafted=[[0, 0, 1], [0, 0, 1]],
    num_tokens=[1, 2],
    num_calls=[1, 1],
    num_computed=[2, 2],
)


def outputs(*batches) -> list[results.Decode]:
  rows = lambda batch: range(len(batch.num_calls))
  return [batch.decode(row) for batch in batches for row in rows(batch)]


TOTAL = counts.of_run(outputs(FIRST, SECOND), 3 + 1, 4 * 3 + 2 * 1)


class TestCounts:

  def test_run(self):
    assert counts.count_run(TOTAL) == {
        'tokens': 13,
        'target_calls': 7,
        'loop_steps': 4,
    }

  def test_speculation(self):
    assert counts.count_speculation(TOTAL) == {
        'drafted': 13,
        'drafted_computed': 14,
        'tested': 11,
        'accepted': 7,
        'cut_short': 1,
        'acceptance_histogram': (2, 3, 2),
        'per_position_acceptance': (5 / 7, 2 / 6),
    }

  def test_rates(self):
    speculation = counts.count_speculation(TOTAL)
    rates = counts.acceptance_rates(counts.count_run(TOTAL) | speculation)
    assert rates == {
        'draft_acceptance_rate': 7 / 13,
        'accepted_per_tested': 7 / 11,
        'mean_acceptance_length': 1 + 7 / 7,
        'tokens_per_target_call': 13 / 7,
    }

  def test_padded_share(self):
    """Of 4 rows times 3 steps and 2 times 1, seven were used."""
    assert TOTAL.idle_share == pytest.approx(1 - 7 / 14)

  def test_parts_add_up(self):
    part = counts.of_run(outputs(SECOND), 1, 2)
    both = counts.of_run(outputs(SECOND, SECOND), 2, 4)
    assert counts.add([part, part]) == both

  def test_of_an_example(self):
    """Of two examples with two rows each, and one in a batch of its own."""
    rows = outputs(FIRST, SECOND)
    found = [counts.of_decodes(rows[i : i + 2]) for i in (0, 2, 4)]
    assert {name: [x[name] for x in found] for name in found[0]} == {
        'tokens': [7, 3, 3],
        'target_calls': [4, 1, 2],
        'drafted': [7, 2, 4],
        'drafted_computed': [8, 2, 4],
        'tested': [6, 2, 3],
        'accepted': [4, 2, 1],
        'tested_per_position': [[4, 2], [1, 1], [2, 1]],
        'accepted_per_position': [[3, 1], [1, 1], [1, 0]],
    }
    plain = outputs(FIRST.replace(statistics=None))
    assert counts.of_decodes(plain) == {'tokens': 10, 'target_calls': 5}
