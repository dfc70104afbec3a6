# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""No report is made of a measurement that contradicts itself."""

import dataclasses

import pytest

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.paper import markdown_tables
from speculative_t5x.research.paper import points
from speculative_t5x.research.reports import advice
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import walltime_summary
from tests.research.paper import records

_GAMMA = 4


def _record(speedup=2.11, interval=(1.83, 2.4), tokens_per_call=2.5, **values):
  record = records.measured(
      _GAMMA, tokens_per_call=tokens_per_call, task='a', lossless=True,
      t_width_ms=(10.0, 11.0, 12.0, 13.0), **values,
  )  # fmt: skip
  return dataclasses.replace(record, speedup=speedup, speedup_ci95=interval)


_ABOVE_ITS_PARTS = dataclasses.replace(
    _record(), loop_efficiency=1.08, loop_efficiency_ci95=(1.04, 1.12)
)
_BAD = [
    # A speedup of 2.11 at 1.32 tokens per call, as a busy machine gave.
    _record(tokens_per_call=1.32),
    _ABOVE_ITS_PARTS,
    dataclasses.replace(_record(), verify_cost_ratio=0.6),
]
_NAMES = ['cannot be', 'above its parts', 'cheap verification']


@pytest.mark.parametrize('record', _BAD, ids=_NAMES)
class TestOfABadMeasurement:
  """Each place that turns times into words."""

  def test_verdict(self, record):
    assert judgement.objection(record)
    assert judgement.verdict(record) == judgement.Claim.UNRELIABLE

  def test_readable(self, record):
    """Its counts may be read, and nothing in seconds."""
    found = judgement.readable(record)
    assert found.tokens_per_target_call == record.tokens_per_target_call
    assert found.baseline.loop_steps == record.baseline.loop_steps
    assert found.alpha == record.alpha
    seconds = [
        key
        for key, value in dataclasses.asdict(found).items()
        if value is not None
        and (key.endswith(('_ms', '_s')) or 'speedup' in key or key == 'c')
    ]
    assert seconds == [] and found.baseline.walltime_s is None

  def test_reports(self, record):
    quality = {'bleu': 30.0}
    calls = lambda run: dataclasses.replace(run, target_calls=9)
    judged = dataclasses.replace(
        record,
        baseline=calls(record.baseline),
        speculative=calls(record.speculative),
        quality=run_record.BothRuns(quality, quality),
        split='validation',
        draft_acceptance_rate=0.5,
        accepted_per_tested=0.5,
    )
    pair = markdown_tables.MeasuredPair('a', 'b', [record])
    for page in (
        str(walltime_summary.render_eval([judged])),
        str(walltime_summary.render([record])),
        console.to_text(walltime_summary.render([record])),
        str(methods_table.render({'task': [record]})),
        str(markdown_tables.tables_2_and_4([], [pair])),
    ):
      for word in ('2.11 [', 'faster |', 'pays: ', '**'):
        assert word not in page.partition(judgement.REMEDY)[0], word
      assert judgement.REMEDY in page
    assert points.from_records([record]) == []

  def test_advice_and_costs(self, record):
    (line,) = advice.describe([record])
    assert line.startswith('no advice: ') and judgement.REMEDY in line

  def test_other_gammas_are_still_advised(self, record):
    good = _record(1.5, (1.4, 1.6))
    good = dataclasses.replace(good, gamma=2, t_width_ms=(10.0, 11.0, 12.0))
    lines = advice.describe([record, good])
    assert lines[0].startswith('use gamma 2: 1.50x measured')
    assert 'marginal_gain: c=0.05, verify_cost_ratio={2: 1.10' in lines[1]


@pytest.mark.parametrize(
    'record',
    [
        _record(),
        _record(2.5, (2.4, 2.6)),  # verification at no cost
        dataclasses.replace(
            _ABOVE_ITS_PARTS, loop_efficiency_ci95=(0.99, 1.17)
        ),
        # Rows of a batch wait for each other: the loop has fewer steps.
        dataclasses.replace(
            _record(2.8, (2.7, 2.9)),
            speculative=dataclasses.replace(
                _record().speculative, loop_steps=350
            ),
        ),
    ],
)
def test_nothing_against_it(record):
  assert judgement.objection(record) is None
  assert judgement.readable(record) is record


@pytest.mark.parametrize(
    ('interval', 'verdict'),
    [
        ((1.02, 1.2), 'faster'),
        ((0.8, 0.98), 'slower'),
        ((1.004, 1.2), 'no difference shown'),  # printed as 1.00
        ((0.8, 0.996), 'no difference shown'),
        (None, 'no interval'),
    ],
)
def test_verdict_by_the_interval(interval, verdict):
  assert judgement.verdict(_record(1.1, interval)) == verdict


def test_records_of_other_versions():
  """A missing key raises no objection, and a run alone has no verdict."""
  bare = run_record.RunRecord(speedup=1.5, num_examples=8, batch_size=1)
  assert judgement.objection(bare) is None
  alone = dataclasses.replace(_record(), speedup=None)
  assert judgement.verdict(alone) == judgement.Claim.NOT_MEASURED


def test_costs_that_a_clock_cannot_tell():
  free = dataclasses.replace(_record(), c=0.0)
  assert len(advice.describe([free])) == 1
