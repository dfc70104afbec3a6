# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for batches of token ids."""

import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.speculation import contracts


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
