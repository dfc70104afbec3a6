# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs are read from files; their labels, and what reports derive of them."""

import pytest

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs
from tests.research.paper import records


class TestRead:

  def test_lines(self, tmp_path):
    """A separator within a text ends no line, and none need end the file."""
    written = [records.measured(), records.measured(task='a\u2028b')]
    text = '\n'.join(map(run_record.to_json, written))
    (tmp_path / 'results.jsonl').write_text(text)
    assert runs.read(tmp_path / 'results.jsonl') == written

  @pytest.mark.parametrize(
      'content', [None, b'{"a": \n', b'\xff\xfe\x00', b'[1]\n', b'{"a": 1}\n']
  )
  def test_something_else(self, content, tmp_path):
    path = tmp_path / 'results.jsonl'
    if content is not None:
      path.write_bytes(content)
    with pytest.raises(ValueError) as error:
      runs.read(path)
    assert str(error.value).startswith(f'{path} cannot be read as run records')


@pytest.mark.parametrize(
    ('values', 'is_same'),
    [
        ({'gamma': 2, 'alpha': 0.1}, True),
        ({'temperature': 0.5}, False),
        ({'batch_size': 8}, False),
        ({'topk': 0, 'topp': 0.9}, False),
        ({'draft_sampling': {'topk': 5}}, False),
        ({'simulated_acceptance': 0.75}, False),
    ],
)
def test_runs_of_one_label_differ_in_gamma_alone(values, is_same):
  labels = map(runs.label, (records.measured(), records.measured(**values)))
  assert (len({*labels}) == 1) == is_same


@pytest.mark.parametrize(
    'changed',
    [
        records.changed(records.measured(), 'target', name='b/2'),
        records.measured(inputs_length=64),
    ],
)
def test_what_differs_is_added_to_labels(changed):
  one, other = runs.labels([records.measured(), changed], runs.label)
  assert one != other and one.startswith(runs.label(records.measured()))


_TARGET = descriptions.ModelDescription
_DRAFTER = descriptions.DrafterDescription


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
