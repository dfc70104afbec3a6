# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for batches of token ids."""

import numpy as np
import pytest

from speculative_t5x.decoder import batching
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling

GREEDY = sampling.Sampling()


class TestPad:

  def test_pads_and_cuts(self):
    rows = [np.array([5, 6]), np.array([], int), [1, 2, 3, 4]]
    padded = batching.pad(rows, 3)
    np.testing.assert_array_equal(padded, [[5, 6, -1], [-1, -1, -1], [1, 2, 3]])
    assert padded.dtype == np.int32

  def test_another_filler(self):
    np.testing.assert_array_equal(batching.pad([[7]], 3, 1), [[7, 1, 1]])


class TestTextIds:

  def test_special_ids_of_the_model_count(self):
    ids = contracts.SpecialIds(end=2, padding=1, start=0)
    found = batching.text_ids([0, 5, 1, 9, 2, 6], ids)
    assert found == [0, 5, 9]


class TestRequests:

  def test_rows_that_fill_a_batch_are_padding(self):
    tokens = np.arange(2, 14, dtype=np.int32).reshape(3, 4)
    first, last = batching.requests(
        tokens,
        np.array([7, 8, 9], np.int32),
        batch_size=2,
        length=5,
        seed=3,
        sampling=GREEDY,
        draft_sampling=GREEDY,
    )
    np.testing.assert_array_equal(first.inputs, tokens[:2])
    np.testing.assert_array_equal(
        last.inputs, [tokens[2], [-1, -1, -1, -1]]
    )
    np.testing.assert_array_equal(last.limits, [5, 0])
    assert first.hints is None
    np.testing.assert_array_equal(last.example_ids, [9, 0])

  def _with_hints(self, hints):
    return batching.requests(
        np.ones((3, 2), np.int32),
        np.arange(3),
        batch_size=2,
        length=5,
        seed=3,
        sampling=GREEDY,
        draft_sampling=GREEDY,
        hints=np.asarray(hints, np.int32),
    )

  def test_hints_follow_their_examples(self):
    first, last = self._with_hints([[3, 4], [5, 9], [6, 7]])
    np.testing.assert_array_equal(first.hints, [[3, 4], [5, 9]])
    np.testing.assert_array_equal(last.hints, [[6, 7], [-1, -1]])

  def test_hints_of_another_number_of_examples(self):
    with pytest.raises(ValueError, match='hints for 2 examples and 3 inputs'):
      next(self._with_hints([[3], [4]]))
