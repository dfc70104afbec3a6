# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of `optimized` with the default passes of XLA.

They read the program that XLA hands to LLVM, so LLVM does not optimize it.
"""

import pytest

from tests import processes

pytestmark = pytest.mark.long


def test_optimized_programs():
  processes.run(['tests/optimized/compiled_loop.py'], {'XLA_FLAGS': ''})
