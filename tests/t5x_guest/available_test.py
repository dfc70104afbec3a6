# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts the tests that need T5X."""

import pathlib
import re

import pytest


def test_t5x_can_be_imported():
  try:
    import t5x.models
  except ImportError as error:
    files = pathlib.Path(__file__).parent.glob('*_test.py')
    count = sum(
        len(re.findall(r'^ *def test_', path.read_text(), re.MULTILINE))
        for path in files
    )
    pytest.skip(f'{count} tests need T5X (make test-t5x): {error}')
  assert t5x.models.EncoderDecoderModel
