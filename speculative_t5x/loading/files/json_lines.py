# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Values as lines of JSON that every reader takes for one line each."""

import json
from typing import Any

# Line ends to some readers of text, which JSON allows within strings. JSON
# itself escapes all characters below U+0020.
_ESCAPED = {ord(each): f'\\u{ord(each):04x}' for each in '\x85\u2028\u2029'}


def dumps(value: Any, **options: Any) -> str:
  """Return a value as one line of JSON, without the newline.

  Options are those of `json.dumps`, such as an encoder. NaN and infinities,
  which JSON does not have, and lone surrogates are refused.
  """
  text = json.dumps(value, ensure_ascii=False, allow_nan=False, **options)
  try:
    text.encode()
  except UnicodeEncodeError as error:
    lone = ascii(text[error.start])
    raise ValueError(
        f'it has the half {lone} of a surrogate pair, which UTF-8 cannot hold.'
        ' Remove it, or write the whole character.'
    ) from error
  return text.translate(_ESCAPED)
