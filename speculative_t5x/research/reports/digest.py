# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The digest of the records that a figure or a table was made from.

It stands in the metadata of a picture and in a comment of a Markdown page. A
page or picture whose digest is not that of its records is out of date.
"""

from collections.abc import Iterable
import dataclasses
import hashlib
import json
from typing import Any

_DIGITS = 16


def of(records: Iterable[Any]) -> str:
  """Return the digest of records, dataclasses or JSON, whatever their order.

  A key that a later version adds does not change it where it has no value.
  """
  # A job that was resumed may add its records in another order.
  lines = sorted(json.dumps(_known(x), sort_keys=True) for x in records)
  return hashlib.sha256('\n'.join(lines).encode()).hexdigest()[:_DIGITS]


def note(records: Iterable[Any]) -> str:
  """Return the words that say which records something was made from."""
  return f'records: {of(records)}'


def _known(value: Any) -> Any:
  if dataclasses.is_dataclass(value):
    value = dataclasses.asdict(value)
  if isinstance(value, dict):
    return {k: _known(v) for k, v in value.items() if v is not None}
  if isinstance(value, list | tuple):
    return [_known(x) for x in value]
  return value
