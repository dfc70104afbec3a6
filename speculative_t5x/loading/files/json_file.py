# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""JSON objects, from files and headers that may be damaged."""

import json
from typing import Any

from etils import epath

from speculative_t5x.loading.files import regular_files

MAX_BYTES = 100 * 10**6  # of a safetensors header, as its format says


def read(path: epath.Path) -> dict[str, Any]:
  """Reads the object that a file holds.

  Raises:
    errors.CheckpointError: if the path is no regular file.
    OSError or ValueError: if the file cannot be read, or holds anything else.
  """
  regular_files.check(path)
  with path.open('rb') as file:
    data = file.read(MAX_BYTES + 1)
  if len(data) > MAX_BYTES:
    raise ValueError(f'it is longer than {MAX_BYTES} bytes')
  return parse(data)


def parse(data: bytes) -> dict[str, Any]:
  """Returns the object that some bytes stand for.

  Raises:
    ValueError: if they are anything else, or hold a name twice.
  """
  try:
    value = json.loads(data, object_pairs_hook=_unique)
  except RecursionError as error:
    raise ValueError('it is nested too deeply') from error
  if not isinstance(value, dict):
    raise ValueError('it holds no object')
  return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  result = dict(pairs)
  if len(result) != len(pairs):
    raise ValueError('it holds a name twice')
  return result
