# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of `optimized` with the default optimizations of XLA."""

import pytest

from tests import pytest_process

pytestmark = pytest.mark.own_process


def test_optimized_programs():
  variables = {'JAX_DISABLE_MOST_OPTIMIZATIONS': '0', 'XLA_FLAGS': ''}
  pytest_process.run(['tests/optimized/compiled_loop.py'], variables)
