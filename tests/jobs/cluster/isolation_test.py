# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs that cannot be decoded are told from those that can."""

from hypothesis import given
from hypothesis import strategies
import pytest

from speculative_t5x.jobs.cluster import isolation


def _decode(inputs):
  if any(x < 0 for x in inputs):
    raise ValueError(f'{min(inputs)} is not decoded')
  return [('decoded', x) for x in inputs]


@given(strategies.lists(strategies.integers(-3, 9), min_size=1, max_size=20))
def test_each_input_is_there_once_in_order(inputs):
  found = isolation.isolated(
      _decode, inputs, lambda x, error: [('failed', x, str(error))]
  )
  assert [x for each in found for x in each] == [
      ('decoded', x) if x >= 0 else ('failed', x, f'{x} is not decoded')
      for x in inputs
  ]


def test_other_errors_are_not_those_of_an_input():
  def decode(_):
    raise RuntimeError

  with pytest.raises(RuntimeError):
    isolation.isolated(decode, [1, 2], lambda *_: None)
