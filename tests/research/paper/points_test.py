# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run records give alphas for Table 3, and points for figures."""

import dataclasses

import pytest

from speculative_t5x.research.paper import points
from tests.research.paper import records

_NAME = 'bulletins_ende: draft/checkpoint_4 for target/checkpoint_2, bfloat16'
_MEASURED = 'c', 'tokens_per_target_call', 'speedup'


class TestPairLabel:

  def test_is_that_of_all_temperatures_and_rates(self):
    for record in (records.measured(), records.measured(3, 1.0)):
      assert points.pair_label(record) == _NAME
    for record in (
        records.simulated(),
        records.simulated(0.5, temperature=1.0),
    ):
      expected = _NAME.removeprefix('bulletins_ende: ')
      assert points.pair_label(record) == f'{expected}, simulated'

  @pytest.mark.parametrize(
      'draft, target, label',
      [
          (('model', 't5_1_1_small', None), ('t5_1_1_xl', None),
           'T5 1.1 small for T5 1.1 XL'),
          (('model', 'draft/checkpoint_3000', 'a/draft/checkpoint_3000'),
           ('target/checkpoint_2500', 'a/target/checkpoint_2500'),
           'draft model 77M for 11.1B'),
          (('shared_encoder', 'x/checkpoint_1', 'x/checkpoint_1'),
           ('y/checkpoint_2', 'y/checkpoint_2'),
           'shared encoder 77M for 11.1B'),
          (('lookup', 'lookup_1_3', None), ('y/checkpoint_2', 'y'),
           'lookup_1_3 for 11.1B'),
      ],
  )  # fmt: skip
  def test_checkpoints_are_named_by_their_sizes(self, draft, target, label):
    kind, name, checkpoint = draft
    record = records.measured(task=None)
    record = records.changed(
        record, 'drafter', kind=kind, name=name, checkpoint=checkpoint
    )
    name, checkpoint = target
    record = records.changed(
        record, 'target', name=name, checkpoint=checkpoint
    )
    assert points.pair_label(record) == f'{label}, bfloat16'


class TestAlphas:

  def test_one_for_all_gammas(self):
    swept = [records.measured(gamma) for gamma in (1, 3)]
    plain = dataclasses.replace(records.measured(), alpha=None, drafter=None)
    other = records.changed(records.measured(alpha=0.6), 'target', name='b/2')
    found = points.alphas([plain, *swept, other])
    assert [(name, alpha.value) for name, _, alpha in found] == [
        (_NAME, 0.7), (_NAME.replace('target/checkpoint_2', 'b/2'), 0.6)
    ]  # fmt: skip

  def test_two_of_one_label(self):
    found = [records.measured(), records.measured(alpha=0.6)]
    with pytest.raises(ValueError, match='twice, with alpha 0.7 and 0.6'):
      points.alphas(found)


class TestPoints:

  def test_values(self):
    record = records.measured(3, 1.0, speedup_ci95=None)
    assert points.from_records([record]) == [(_NAME, 0.7, record)]

  @pytest.mark.parametrize(
      ('key', 'value'),
      [
          *((key, None) for key in ('drafter', 'gamma', 'alpha', *_MEASURED)),
          *((key, float('nan')) for key in _MEASURED),
      ],
  )
  def test_incomplete_records_are_left_out(self, key, value):
    complete = records.measured()
    incomplete = dataclasses.replace(complete, **{key: value})
    (point,) = points.from_records([complete, incomplete])
    assert point.run is complete
