# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of both forms of writing rows at different positions, on a TPU."""

import pytest

from speculative_t5x.networks import t5
from speculative_t5x.research.tpu_aot import row_writes
from tests.research.tpu_aot import libtpu

ROWS, BLOCK, SLOTS = 8, 2, 40
CONFIG = t5.T5Config(vocab_size=64, num_heads=4, head_dim=64, dtype='bfloat16')
_CACHES = 2 * 2 * ROWS * 4 * 64 * SLOTS  # of keys and values, bytes


@pytest.fixture(scope='module')
def compiled():
  place = libtpu.describe('v4:1x1x1')
  return {
      name: row_writes.compile_form(
          form, CONFIG, place, rows=ROWS, block=BLOCK, slots=SLOTS
      ).step
      for name, form in row_writes.FORMS.items()
  }


@libtpu.needed
class TestCompileForm:

  def test_scatter_writes_rows_one_after_another(self, compiled):
    assert compiled['a scatter'].scatter_trips == 2 * ROWS
    written = _CACHES * BLOCK / SLOTS
    assert compiled['a scatter'].cache_bytes_written == written
    assert compiled['a scatter'].cache_bytes_remade == 0

  def test_selection_writes_all_rows_together(self, compiled):
    assert compiled['a selection'].scatter_trips == 0
    assert compiled['a selection'].cache_bytes_remade == _CACHES
    assert compiled['a selection'].cache_bytes_written == 0

  def test_faster_form(self, compiled):
    assert compiled['a selection'].cycles < compiled['a scatter'].cycles / 2
