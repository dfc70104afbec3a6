# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Texts are measured as the walltime job measures the examples of a task."""

import pytest

from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.measurement import text_walltime
from speculative_t5x.research.paper import points
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import sampling
from tests import workloads

TEXTS = ['The train is late.', 'It rains. ' * 9, 'Bread is cheap.']


pytestmark = pytest.mark.usefixtures('unchecked_types')


@pytest.fixture(scope='module', autouse=True)
def instant_parts():
  with workloads.instant_parts():
    yield


@pytest.fixture(scope='module')
def decoder():
  return workloads.text_decoder(gamma=1, inputs_length=16)


@pytest.fixture(scope='module')
def greedy(decoder):
  """Return the records of gamma 1 and 2 at temperature 0."""
  return text_walltime.measure(decoder, TEXTS, (1, 2), repeats=1, rounds=1)


class TestMeasure:

  def test_times(self, greedy):
    for record in greedy:
      plain, speculative = record.baseline, record.speculative
      ratio = plain.walltime_s / speculative.walltime_s
      assert record.speedup == pytest.approx(ratio)
      assert record.t1_ms > 0 and record.bound_speedup > 0
    # All that a figure needs, where the machine lets the times be read.
    readable = [x for x in greedy if judgement.objection(x) is None]
    assert len(points.from_records(greedy)) == len(readable)
    assert '; given texts, 3 examples;' in str(walltime_summary.render(greedy))

  def test_counts_are_those_of_decoding(self, decoder, greedy):
    outputs = [decoder.decode([text]).statistics for text in TEXTS]
    for key in ('tokens', 'target_calls', 'accepted', 'tested'):
      total = sum(output[key] for output in outputs)
      assert getattr(greedy[0].speculative, key) == total
    assert greedy[0].greedy.identical == len(TEXTS)
    assert greedy[0].alpha == greedy[1].alpha
    assert greedy[0].alpha.num_tokens == greedy[0].baseline.tokens

  def test_samples(self, decoder):
    options = dict(sampling=sampling.Sampling(1.0), seed=3)
    (record,) = text_walltime.measure(
        decoder, TEXTS[:2], 1, repeats=1, rounds=1, **options
    )
    expected = [
        decoder.decode([text], example_ids=[number], **options)
        for number, text in enumerate(TEXTS[:2])
    ]
    tokens = sum(output.statistics['tokens'] for output in expected)
    assert record.speculative.tokens == tokens
    assert record.greedy is None and record.drafter.temperature == 1

  @pytest.mark.parametrize(
      ('given', 'named'),
      [
          ({'texts': 'a text'}, 'texts'),
          ({'texts': []}, 'texts'),
          ({'gammas': (0, 2)}, 'gammas'),
          ({'gammas': 13}, 'gamma 13'),
          ({'repeats': 0}, 'repeats'),
          ({'rounds': 0}, 'rounds'),
      ],
  )
  def test_refused(self, decoder, given, named):
    with pytest.raises(ValueError, match=f'^{named} '):
      text_walltime.measure(decoder, **{'texts': TEXTS, 'gammas': 2, **given})
