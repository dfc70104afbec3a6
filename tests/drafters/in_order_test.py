# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of several drafters in order."""

import dataclasses

import jax.numpy as jnp
import pytest

from speculative_t5x.drafters import in_order
from speculative_t5x.loading import descriptions
from speculative_t5x.loading.drafters import in_order_source
from speculative_t5x.loading.drafters import source
from speculative_t5x.speculation import contracts
from speculative_t5x.testing import table_model
from tests import repeat_last

GAMMA, VOCAB = 3, 3
TARGET = table_model.Model(VOCAB)


class TestJoin:

  def test_places_and_kinds(self):
    point = contracts.Draft(
        jnp.array([[7, 8, 0], [5, 0, 0], [0, 0, 0]]), jnp.array([2, 1, 0])
    )
    probs = jnp.arange(9, dtype=jnp.float32).reshape(3, 3, 1)
    drawn = contracts.Draft(
        jnp.array([[1, 2, 3], [1, 2, 3], [1, 2, 3]]),
        jnp.array([1, 2, 3]),
        probs,
    )
    found = in_order.join(point, drawn)
    assert found.tokens.tolist() == [[7, 8, 1], [5, 1, 2], [1, 2, 3]]
    assert found.lengths.tolist() == [3, 3, 3]
    assert found.is_point_mass.tolist() == [
        [True, True, False], [True, False, False], [False, False, False]
    ]  # fmt: skip
    assert found.probs[0, 2, 0] == probs[0, 0, 0]
    assert found.probs[1, 1:, 0].tolist() == probs[1, :2, 0].tolist()
    assert found.probs[2, :, 0].tolist() == probs[2, :, 0].tolist()

  def test_only_point_masses_need_no_probabilities(self):
    draft = contracts.Draft(jnp.zeros((1, 2), jnp.int32), jnp.array([1]))
    assert in_order.join(draft, draft).probs is None


class TestSources:

  def test_one_source(self):
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last')
    with pytest.raises(ValueError, match='at least two drafters in order'):
      in_order_source.FromSources([own])

  def test_no_source(self):
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last')
    with pytest.raises(ValueError, match='A drafter must be'):
      in_order_source.FromSources([own, repeat_last.RepeatLast])

  def test_loaded(self):
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last').load()
    loaded = in_order_source.from_drafters([own, own])
    assert loaded.description.kind == 'repeat_last then repeat_last'
    made = loaded.drafter(TARGET, 4)
    assert made.max_draft_tokens == 4
    assert loaded.params == (None, None)

  def test_described_by_all_that_tells_drafters_apart(self):
    """Checkpoints of one name are others, and their files are watched."""
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last').load()

    def describe(*models):
      loaded = [
          dataclasses.replace(
              own, description=descriptions.DrafterDescription(**each)
          )
          for each in models
      ]
      return in_order_source.from_drafters([own, *loaded]).description

    model = {
        'kind': 'model', 'name': 'a/1', 'checkpoint': '/x/a/1',
        'dtype': 'float32', 'model_parallel': False, 'short_vocabulary': 512,
        'table': '/table',
    }  # fmt: skip
    found = dataclasses.asdict(describe(model))
    assert found['name'] == 'repeat_last then a/1'
    for key in model.keys() - {'kind', 'name'}:
      assert found[key] == model[key]
    other = {**model, 'checkpoint': '/y/a/1'}
    assert describe(model, other).checkpoint == '/x/a/1 then /y/a/1'
