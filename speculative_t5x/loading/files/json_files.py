# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""JSON in files: objects, which may be damaged, and lines to be written."""

import contextlib
import json
from typing import Any

from etils import epath

# Line ends to some readers of text, which JSON allows within strings. JSON
# itself escapes all characters below U+0020.
_ESCAPED = {ord(each): f'\\u{ord(each):04x}' for each in '\x85\u2028\u2029'}


def read(path: epath.Path) -> dict[str, Any]:
  """Read the object that a file holds."""
  value = json.loads(path.read_bytes())
  if not isinstance(value, dict):
    raise ValueError('it holds no JSON object')
  return value


def first_object(path: epath.Path) -> dict[str, Any] | None:
  """Return the JSON object at the start of a file, or None."""
  # A job that is killed during a write leaves a truncated file.
  with contextlib.suppress(ValueError, RecursionError):
    value, _ = json.JSONDecoder().raw_decode(path.read_text(encoding='utf-8'))
    return value if isinstance(value, dict) else None
  return None


def dumps(value: Any, **options: Any) -> str:
  """Return a value as one line of JSON, which every reader takes for one.

  Options are those of `json.dumps`, such as an encoder. NaN and infinities,
  which JSON does not have, and lone surrogates are refused.
  """
  text = json.dumps(value, ensure_ascii=False, allow_nan=False, **options)
  text.encode()  # its error names a lone surrogate
  return text.translate(_ESCAPED)
