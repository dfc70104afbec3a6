# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values that reports derive from run records."""

import pytest

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import readings
from tests.research.paper import records

_TARGET = descriptions.ModelDescription
_DRAFTER = descriptions.DrafterDescription


def test_verdict_is_by_the_interval():
  """As it is printed: 1.004 is 1.00."""
  verdict = lambda *interval: readings.verdict(
      records.measured(speedup=1.1, speedup_ci95=interval or None)
  )
  assert verdict(1.01, 1.2) == 'faster' and verdict(0.8, 0.99) == 'slower'
  for interval in ((0.99, 1.2), (1.004, 1.2), (0.8, 0.996)):
    assert verdict(*interval) == 'no difference shown'
  assert verdict() == 'no interval'


def test_alpha_of_simulated_acceptance_is_its_rate():
  """The models' own alpha says nothing of such a run."""
  assert readings.alpha(records.measured(alpha=0.6)) == 0.6
  record = records.measured(alpha=0.1, simulated_acceptance=0.75)
  assert readings.alpha(record) == 0.75


def test_rule_and_policy_of_the_paper_are_left_out():
  assert readings.rule_and_policy(records.measured()) == []
  changes = {'lossless': False, 'gamma_policy': 'schedule(1)'}
  rule = run_record.Verification('lenience(lenience=0.5)')
  found = readings.rule_and_policy(
      records.measured(verification=rule, **changes)
  )
  assert found == ['rule lenience(lenience=0.5), not lossless', 'schedule(1)']
  rule = run_record.Verification('simulated_acceptance')
  record = records.measured(verification=rule, simulated_acceptance=0.5)
  assert readings.rule_and_policy(record) == []


@pytest.mark.parametrize('gamma', [1, 7])
def test_interleaving_factor(gamma):
  found = readings.interleaving_factor(records.measured(gamma))
  assert found == pytest.approx(1.1)


@pytest.mark.parametrize(
    'model, name',
    [
        (_TARGET(name='a/b', num_params=5), 'a/b'),
        (_DRAFTER(kind='model', num_params=77_000_000), 'model 77M'),
        (_DRAFTER(kind='bigram'), 'bigram'),
        (_TARGET(num_params=11_000_000_000), 'no checkpoint 11B'),
    ],
)
def test_models_without_checkpoints_are_told_apart(model, name):
  assert readings.model_name(model) == name
