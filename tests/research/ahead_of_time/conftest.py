# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of this folder."""

import pytest

from tests import compilation
from tests.research.ahead_of_time import libtpu


@pytest.fixture(scope='module', autouse=True)
def compiling_without_devices():
  with (
      libtpu.environment(),
      compilation.optimized(),
      compilation.unchecked_types(),
  ):
    yield
