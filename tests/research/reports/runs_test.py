# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs are read from files; their labels, and what reports derive of them."""

import pytest

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs
from tests.research.paper import records

_NAME = 'bulletins_ende: draft/checkpoint_4, T=0, bfloat16'


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


class TestLabel:

  @pytest.mark.parametrize(
      'values, label',
      [
          ({}, _NAME),
          ({'gamma': 2, 'alpha': 0.1}, _NAME),
          ({'temperature': 0.5}, _NAME.replace('T=0', 'T=0.5')),
          ({'batch_size': 8}, _NAME.replace('T=0', 'T=0, batch 8')),
          ({'topk': 0, 'topp': 0.9}, _NAME.replace('T=0', 'T=0, topp 0.9')),
          (
              {'draft_sampling': {'topk': 5}},
              _NAME.replace('T=0', 'T=0, draft topk 5'),
          ),
      ],
  )
  def test_says_what_is_not_usual(self, values, label):
    assert runs.label(records.measured(**values)) == label

  def test_simulated(self):
    pair = 'draft/checkpoint_4 for target/checkpoint_2'
    record = records.simulated()
    assert runs.label(record) == (
        f'{pair}, T=0, bfloat16, simulated acceptance 0.75'
    )


@pytest.mark.parametrize(
    'changed, ends',
    [
        (
            records.changed(records.measured(), 'target', name='b/2'),
            [', for target/checkpoint_2', ', for b/2'],
        ),
        (
            records.measured(inputs_length=64),
            [', inputs of 96', ', inputs of 64'],
        ),
        # The other label says it already.
        (
            records.changed(records.measured(task='b'), 'device', kind='x'),
            ['', None],
        ),
    ],
)
def test_what_differs_is_added_to_labels(changed, ends):
  found = runs.labels([records.measured(), changed], runs.label)
  if ends[1] is None:
    found, ends = found[:1], ends[:1]
  assert found == [_NAME + end for end in ends]


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
