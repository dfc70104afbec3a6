# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""JSON objects, from files that may be damaged."""

import json
from typing import Any

from etils import epath

from speculative_t5x.loading.files import regular_files

_MAX_BYTES = 100 * 10**6  # far above those of any file that is read here


def read(path: epath.Path) -> dict[str, Any]:
  """Read the object that a file holds."""
  regular_files.check(path)
  if path.stat().length > _MAX_BYTES:
    raise ValueError(f'it is longer than {_MAX_BYTES} bytes')
  value = json.loads(path.read_bytes())
  if not isinstance(value, dict):
    raise ValueError('it holds no JSON object')
  return value
