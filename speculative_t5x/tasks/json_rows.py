# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads data sets that are files of JSON lines."""

from collections.abc import Callable
import json
import os
from typing import Any, TypeVar

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import user_paths

_Row = TypeVar('_Row')


def read(
    path: str | os.PathLike[str],
    parse: Callable[[Any], _Row],
    wanted: str,
    remedy: str,
) -> list[_Row]:
  """Read the rows of a file; blank lines are left out.

  Args:
    path: The path of the file, which may be remote (`gs://`).
    parse: Returns what is kept of a value; may raise KeyError, TypeError or
      ValueError for one that is not a row.
    wanted: Says what a row is, in errors.
    remedy: Says what to do about another file.
  Raises:
    FileNotFoundError: if there is no such file.
    ValueError: naming file and line, for a line that is not a row.
  """
  path = user_paths.expand(path)
  if not path.is_file():
    raise FileNotFoundError(f'There is no file {path}. {remedy}')
  rows = []
  # As bytes, of which a damaged line is found below; not by `splitlines`, which
  # would also split at other separators.
  for number, line in enumerate(path.read_bytes().split(b'\n'), start=1):
    try:
      if line.strip():
        rows.append(parse(json.loads(line)))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
      raise ValueError(
          f'{path}, line {number} is not {wanted} ({type(error).__name__}:'
          f' {errors.first_line(error)}). {remedy}'
      ) from error
  return rows
