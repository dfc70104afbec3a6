# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs are read, told apart by their labels, and laid over figures."""

import pytest

from speculative_t5x import run_record
from speculative_t5x.paper import runs
from tests.paper import records

_NAME = 'bulletins_ende: draft/checkpoint_4, T=0, bfloat16'


def _changed(record, key, **values):
  return record | {key: record[key] | values}


def _dialled(rate=0.75, **values):
  return records.measured(simulated_acceptance=rate, task=None, **values) | {
      'alpha': None
  }


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
          ({'task': None}, _NAME.removeprefix('bulletins_ende: ')),
          ({'batch_size': 8}, _NAME.replace('T=0', 'T=0, batch 8')),
          ({'topk': 40}, _NAME.replace('T=0', 'T=0, topk 40')),
          ({'topk': 0, 'topp': 0.9}, _NAME.replace('T=0', 'T=0, topp 0.9')),
      ],
  )
  def test_says_what_is_not_usual(self, values, label):
    assert runs.label(records.measured(**values)) == label

  def test_the_usual_dtype_is_left_out(self):
    record = _changed(records.measured(), 'target', dtype='float32')
    assert runs.label(record) == _NAME.removesuffix(', bfloat16')

  def test_a_draft_of_another_temperature(self):
    record = _changed(records.measured(), 'drafter', temperature=0.5)
    assert 'T=0, draft T=0.5' in runs.label(record)

  def test_dialled(self):
    pair = 'draft/checkpoint_4 for target/checkpoint_2'
    record = _dialled()
    assert runs.label(record) == f'{pair}, T=0, bfloat16, dialled 0.75'
    assert runs.curve_label(record) == f'{pair}, bfloat16, dialled'

  def test_curves_of_measured_runs_are_told_apart_by_temperature(self):
    for record in (records.measured(), records.measured(temperature=1.0)):
      assert runs.curve_label(record) == runs.label(record)


class TestLabels:

  @pytest.mark.parametrize(
      'changed, ends',
      [
          (
              _changed(records.measured(), 'target', name='b/2'),
              [', for target/checkpoint_2', ', for b/2'],
          ),
          (
              _changed(records.measured(), 'drafter', checkpoint='/b/draft'),
              [', draft at None', ', draft at /b/draft'],
          ),
          (
              _changed(records.measured(), 'drafter', dtype='float32'),
              [', draft in bfloat16', ', draft in float32'],
          ),
          (
              _changed(records.measured(), 'device', kind='cpu'),
              [', on TPU v5', ', on cpu'],
          ),
          (
              records.measured(inputs_length=64),
              [', inputs of 96', ', inputs of 64'],
          ),
          (
              records.measured(targets_length=64),
              [', outputs of 48', ', outputs of 64'],
          ),
      ],
  )
  def test_what_differs_is_added(self, changed, ends):
    found = runs.labels([records.measured(), changed])
    assert found == [_NAME + end for end in ends]

  def test_no_more_than_is_needed(self):
    """A target of another name has another checkpoint too."""
    other = _changed(
        records.measured(), 'target', name='b/2', checkpoint='/b/2'
    )
    assert runs.labels([records.measured(), other])[1] == f'{_NAME}, for b/2'

  def test_gammas_share_a_label(self):
    assert runs.labels([records.measured(g) for g in (1, 3)]) == [_NAME] * 2

  def test_what_other_labels_say_is_not_added(self):
    other = _changed(records.measured(task='b'), 'device', kind='cpu')
    assert runs.labels([records.measured(), other])[0] == _NAME

  def test_dialled_sweeps_of_two_targets(self):
    other = _changed(_dialled(), 'target', name='b/2')
    one, two = runs.labels([_dialled(), other])
    assert one != two and 'for b/2' in two


class TestAlphas:

  def test_one_for_all_gammas(self):
    swept = [records.measured(gamma) for gamma in (1, 3)]
    plain = records.measured() | {'alpha': None, 'drafter': None}
    other = _changed(records.measured(alpha=0.6), 'target', name='b/2')
    found = runs.alphas([plain, *swept, other])
    assert [(name, alpha['value']) for name, _, alpha in found] == [
        (f'{_NAME}, for target/checkpoint_2', 0.7), (f'{_NAME}, for b/2', 0.6)
    ]  # fmt: skip

  def test_two_of_one_label(self):
    found = [records.measured(), records.measured(alpha=0.6)]
    with pytest.raises(ValueError, match='twice, with alpha 0.7 and 0.6'):
      runs.alphas(found)


class TestPoints:

  def test_values(self):
    record = records.measured(3, 1.0, operations_factor=1.4)
    (point,) = runs.points([record])
    assert point == runs.Point(
        label='bulletins_ende: draft/checkpoint_4, T=1, bfloat16',
        alpha=0.7,
        gamma=3,
        cost_coefficient=records.COST,
        tokens_per_call=2.5,
        speedup=record['speedup'],
        speedup_ci95=tuple(record['speedup_ci95']),
        operations_factor=1.4,
    )

  @pytest.mark.parametrize(
      'key',
      ['drafter', 'gamma', 'alpha', 'c', 'tokens_per_target_call', 'speedup'],
  )
  def test_incomplete_records_are_left_out(self, key):
    complete, incomplete = records.measured(), records.measured() | {key: None}
    assert len(runs.points([complete, incomplete])) == 1
    assert runs.points([incomplete]) == []

  @pytest.mark.parametrize('value', [float('nan'), float('inf')])
  @pytest.mark.parametrize('key', ['c', 'tokens_per_target_call', 'speedup'])
  def test_numbers_that_are_not_finite_are_left_out(self, key, value):
    assert runs.points([records.measured(**{key: value})]) == []

  def test_an_alpha_that_is_no_number_is_left_out(self):
    nan = float('nan')
    assert runs.points([records.measured() | {'alpha': {'value': nan}}]) == []
    assert runs.points([records.measured() | {'alpha': {'value': None}}]) == []
    assert runs.points([_dialled(nan)]) == []

  @pytest.mark.parametrize('factor', [None, float('nan')])
  def test_operations_and_an_interval_may_be_missing(self, factor):
    record = records.measured(speedup_ci95=None, operations_factor=factor)
    (point,) = runs.points([record])
    assert point.speedup_ci95 is None and point.operations_factor is None

  def test_a_dialled_rate_is_alpha(self):
    (point,) = runs.points([_dialled(0.75)])
    assert point.alpha == 0.75 and point.label.endswith('dialled 0.75')

  def test_labels_of_the_callers(self):
    record = records.measured()
    (point,) = runs.points([record], label=lambda r: r['task'])
    assert point.label == 'bulletins_ende'

  def test_labels_are_told_apart(self):
    other = _changed(records.measured(), 'device', kind='cpu')
    found = runs.points([records.measured(), other], label=lambda r: 'a')
    assert [point.label for point in found] == ['a, on TPU v5', 'a, on cpu']
