# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that compiled programs are freed before memory maps run out."""

import sys

import jax
import pytest

from tests import compilation


@pytest.mark.skipif(
    sys.platform != 'linux', reason='only Linux lists maps and memory'
)
@pytest.mark.parametrize(
    ('name', 'most', 'num_kept'),
    [('_MOST_MAPS', 10**9, 1), ('_MOST_MAPS', 0, 0), ('_MOST_BYTES', 0, 0)],
)
def test_programs_are_freed_if_many(monkeypatch, name, most, num_kept):
  monkeypatch.setattr(compilation, '_MOST_BYTES', 10**18)
  monkeypatch.setattr(compilation, name, most)
  program = jax.jit(lambda x: x + 1)
  assert program(1) == 2
  compilation.tidy()
  assert program._cache_size() == num_kept
  assert program(1) == 2
