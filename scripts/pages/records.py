# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of `results`: run records, and other JSON objects."""

import json
import pathlib
import re
from typing import Any

from speculative_t5x.research import run_record
from speculative_t5x.research.reports import runs
from speculative_t5x.training import history


class Entry(dict):
  """A JSON object: `entry.key` is `entry['key']`."""

  def __getattr__(self, key: str) -> Any:
    try:
      return self[key]
    except KeyError as error:
      raise AttributeError(f'the record has no {key!r}') from error


class Records(list[run_record.RunRecord]):
  """The run records of a file; a call returns one of them."""

  def __call__(
      self, draft: str | None = None, **settings: Any
  ) -> run_record.RunRecord:
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
      **settings: values of the record's fields.
    """
    return Records(
        record
        for record in self
        if _has_word(record.drafter.name, draft)
        and _has_word(record.target.name, target)
        and all(
            getattr(record, key) == value for key, value in settings.items()
        )
    )


def _has_word(name: str, word: str | None) -> bool:
  return word is None or word in re.split('[_/]', name)


def read(path: pathlib.Path) -> Records:
  """Reads the run records of a file; see `runs.read`."""
  return Records(runs.read(path))


def read_entry(path: pathlib.Path) -> Entry:
  """Reads a file of one JSON object.

  Raises:
    ValueError: if the file cannot be read; names it.
  """
  try:
    return json.loads(path.read_text(), object_hook=Entry)
  except (OSError, ValueError) as error:
    raise ValueError(f'{path} cannot be read: {error}') from error


def read_entries(path: pathlib.Path) -> list[Entry]:
  """Reads a file of JSON objects, one per line.

  Raises:
    ValueError: if the file cannot be read; names it.
  """
  try:
    # Not `splitlines`, which would also split at Unicode line separators.
    lines = path.read_text().split('\n')
    return [json.loads(line, object_hook=Entry) for line in lines if line]
  except (OSError, ValueError) as error:
    raise ValueError(f'{path} cannot be read: {error}') from error


def read_best_point(folder: pathlib.Path) -> Entry:
  """Reads the measures of a training's best checkpoint; see `read_history`."""
  return max(read_history(folder), key=lambda point: point.score)


def read_history(folder: pathlib.Path) -> list[Entry]:
  """Reads the measures of a training's checkpoints.

  Args:
    folder: with the history that the training wrote.
  Raises:
    ValueError: if the history cannot be read; names it.
  """
  return read_entry(folder / history.FILE_NAME)
