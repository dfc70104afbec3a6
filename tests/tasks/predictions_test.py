# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of decoded texts, read from decoded batches and from files."""

import types

from etils import epath
import numpy as np
import pytest

from speculative_t5x.tasks import predictions


def test_padding_rows_are_left_out():
  decoded = [
      types.SimpleNamespace(
          sequences=np.full((4, 3), i), log_probs=np.full((4,), -i)
      )
      for i in (1, 2)
  ]
  sequences, scores = predictions.best_last(decoded, 6, num_decodes=1)
  assert sequences[:, 0, 0].tolist() == [1, 1, 1, 1, 2, 2]
  assert scores[:, 0].tolist() == [-1, -1, -1, -1, -2, -2]


def test_decodes_of_an_example_are_sorted():
  decoded = types.SimpleNamespace(
      sequences=np.arange(6)[:, None],
      log_probs=-np.array([1, 2, 0, 3, 3, 9]),
      num_tokens=np.ones(6, int),
  )
  sequences, scores = predictions.best_last([decoded] * 2, 3, num_decodes=3)
  assert sequences[..., 0].tolist() == [[1, 0, 2], [5, 3, 4], [1, 0, 2]]
  assert scores.tolist() == [[-2, -1, 0], [-9, -3, -3], [-2, -1, 0]]
  # Tokens stay in the order of the decode numbers.
  tokens = predictions.token_ids([decoded] * 2, 3, num_decodes=3)
  assert tokens == [[[0], [1], [2]], [[3], [4], [5]], [[0], [1], [2]]]


def test_damaged_line_is_named(tmp_path):
  path = epath.Path(tmp_path) / 'predictions.jsonl'
  path.write_text('{"tokens": [1]}\n\n{"tok')
  with pytest.raises(ValueError, match='predictions.jsonl, line 3 is damaged'):
    list(predictions.read_pairs(path))
