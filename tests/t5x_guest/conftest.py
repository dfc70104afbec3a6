# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Skips these tests if T5X cannot be imported.

`available_test.py` then says how many they are. `make test-t5x` collects them
unconditionally, so that they fail without T5X.
"""

import importlib.util
import os

_REQUIRED = 'SPECULATIVE_T5X_REQUIRES_T5X'


def pytest_ignore_collect(collection_path):
  is_needed = collection_path.name not in ('__init__.py', 'available_test.py')
  if is_needed and not _is_available() and not os.environ.get(_REQUIRED):
    return True
  return None


def _is_available() -> bool:
  return importlib.util.find_spec('t5x') is not None
