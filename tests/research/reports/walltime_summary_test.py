# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of the walltime job holds the numbers of its records."""

import dataclasses
import re

from speculative_t5x.research import run_record
from speculative_t5x.research.reports import walltime_summary
from tests.research.paper import records


class TestRender:

  def test_rows(self):
    missing = (
        'drafter', 'gamma', 'alpha', 'c', 'verify_cost_ratio', 'speedup',
        'predicted_speedup', 'bound_speedup', 'speedup_ci95', 'loop_efficiency',
        't_call_ms', 'tokens_per_target_call',
    )  # fmt: skip
    plain = dataclasses.replace(records.measured(), **dict.fromkeys(missing))
    run = records.measured(
        3, 1.0, batch_size=4, speedup_ci95=[0.7, 1.1], floor_ratio=1.236
    )
    table = walltime_summary.render([plain, run])
    assert 'batch 1 / 4;' in table
    _, rows = records.cells(table)
    assert rows[0] == [
        'none (plain)', '0', '-', '1', *['-'] * 4, '10.000', *['-'] * 8
    ]  # fmt: skip
    # 0.8 * 12 / (2.1 + 400 * 16.5 ms), rounded from 1.103.
    assert rows[1] == [
        'draft/checkpoint_4', '1', '3', '4', 'measured', '0.70', '2.50',
        '0.050', '10.000', '1.24', '1.50', '1.10', '2.20', '1.38',
        '1.10 [0.70, 1.10]', 'no difference shown', '0.80',
    ]  # fmt: skip

    headline, _ = records.cells(table.partition('\n\nDetails:')[0])
    assert headline == [
        'drafter', 'T', 'gamma', 'tokens/call', 'over plain', 'verdict'
    ]  # fmt: skip

  def test_sampling(self):
    run = records.measured(topk=9, draft_sampling={'topk': 5})
    table = walltime_summary.render([run, run])
    assert '; topk 9; draft topk 5; target ' in table

  def test_keys_of_the_columns(self):
    """No column is called predicted, which advice is, and in another way."""
    table = walltime_summary.render([records.measured(warnings=['too hot'])])
    header, _ = records.cells(table)
    assert header[-5:-3] == ['Thm 3.8', 'bound'] and 'predicted' not in header
    *_, legend, warning, _ = table.split('\n\n')
    assert 'Thm 3.8 `predicted_speedup`; bound `bound_speedup`' in legend
    keys = set(re.findall('`(.*?)`', legend))
    assert keys and keys <= set(run_record.KEYS)
    words = [word for word in header if f'{word} `' in legend]
    assert len(words) >= 8
    assert warning == (
        '- bulletins_ende: draft/checkpoint_4, T=0, bfloat16, gamma 7: too hot.'
    )
