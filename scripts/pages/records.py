# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the records in `results`, with keys as attributes."""

import json
import pathlib
import re
from typing import Any


class Entry(dict):
  """A JSON object: `entry.key` is `entry['key']`."""

  def __getattr__(self, key: str) -> Any:
    try:
      return self[key]
    except KeyError as error:
      raise AttributeError(f'the record has no {key!r}') from error


class Records(list[Entry]):
  """The records of a file; a call returns one of them."""

  def __call__(self, draft: str | None = None, **settings: Any) -> Entry:
    """Returns the only record with the given settings; see `having`.

    Raises:
      ValueError: if there is none or more than one.
    """
    found = self.having(draft, **settings)
    if len(found) != 1:
      raise ValueError(f'{len(found)} records have these settings')
    return found[0]

  def having(
      self,
      draft: str | None = None,
      target: str | None = None,
      **settings: Any,
  ) -> 'Records':
    """Returns all records with the given settings.

    Args:
      draft: a word of the drafter's name, e.g. 'small'.
      target: a word of the target's name.
      **settings: values of the record's keys.
    """
    return Records(
        record
        for record in self
        if _is_named(record.drafter, draft)
        and _is_named(record.target, target)
        and all(record[key] == value for key, value in settings.items())
    )


def _is_named(model: Entry, word: str | None) -> bool:
  return word is None or word in re.split('[_/]', model.name)


def read(path: pathlib.Path) -> Records:
  """Reads a file of one JSON object per line.

  Raises:
    ValueError: if the file cannot be read; names it.
  """
  try:
    lines = path.read_text().splitlines()
    return Records(json.loads(line, object_hook=Entry) for line in lines)
  except (OSError, ValueError) as error:
    raise ValueError(f'{path} cannot be read: {error}') from error
