# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of the eval job holds the numbers of its records."""

import dataclasses

import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import eval_table


def _record(**values):
  model = {'num_params': 11_700_000, 'dtype': 'float32'}
  defaults = {
      'task': 'bulletins_ende', 'split': 'validation', 'num_examples': 8,
      'batch_size': 4, 'temperature': 0.0, 'gamma': 5, 'target': model,
      'drafter': {**model, 'num_params': 900_000},
      'tokens_per_target_call': 2.25, 'draft_acceptance_rate': 0.5,
      'accepted_per_tested': None, 'speedup': 1.5,
      'speedup_ci95': [1.4, 1.6],
      'baseline': {'walltime_s': 3.0}, 'speculative': {'walltime_s': 2.0},
      'quality': {
          'baseline': {'bleu': 30.299}, 'speculative': {'bleu': 30.301}
      },
      'greedy': {'identical': 8, 'near_tie': 0, 'mismatch': 0},
  }  # fmt: skip
  machine = dataclasses.asdict(provenance.new_record('eval'))
  return run_record.from_dict(machine | defaults | values)


def _lines(*records):
  return console.to_text(eval_table.render(list(records))).splitlines()


class TestTable:

  def test_lines(self):
    records = [_record(), _record(temperature=0.5, greedy=None, gamma=10)]
    heading, header, *rows = _lines(*records)
    assert heading.startswith(
        'bulletins_ende, validation: 8 examples, batch 4; target 11.7M, draft'
        ' 0.9M parameters, float32; '
    )
    assert len({len(line) for line in (header, *rows[:2])}) == 1
    assert rows[0].split() == [
        '0', '5', '2.25', '0.50', '-', '3.00', '2.00', '1.50x', '[1.40,',
        '1.60]',
    ]  # fmt: skip
    assert rows[1].split()[:2] == ['0.5', '10']
    assert rows[2] == (
        'temperature 0: bleu plain 30.30, speculative 30.30; all 8 greedy'
        ' outputs are identical'
    )
    assert rows[3] == 'temperature 0.5: bleu plain 30.30, speculative 30.30'
    assert len(rows) == 6
    assert 'mesh' not in heading

  def test_sampling(self):
    heading, *_ = _lines(_record(topk=9, draft_sampling={'topk': 5}))
    assert ' parameters, topk 9, draft topk 5, float32; ' in heading

  @pytest.mark.parametrize('key', ['near_tie', 'mismatch'])
  def test_greedy_outputs_that_differ(self, key):
    counts = {'identical': 7, 'near_tie': 0, 'mismatch': 0, key: 1}
    text = '\n'.join(_lines(_record(greedy=counts)))
    assert 'identical\n' not in text
    assert (
        f'7 identical, {counts["near_tie"]} near ties,'
        f' {counts["mismatch"]} mismatches'
    ) in text


@pytest.mark.parametrize(
    ('speedup', 'interval', 'words'),
    [
        (1.5, [1.4, 1.6], 'speculation pays: 1.50x the speed'),
        (1.2, [1.0, 1.4], 'show no difference in speed'),
        (0.9, [0.8, 1.0], 'show no difference in speed'),
        (0.8, [0.7, 0.9], 'speculation does not pay: 0.80x the speed'),
        (1.5, None, 'too few batches'),
    ],
)
def test_verdict(speedup, interval, words):
  verdict = _lines(_record(speedup=speedup, speedup_ci95=interval))[-1]
  assert verdict.startswith('temperature 0: ') and words in verdict
