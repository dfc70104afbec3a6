# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the lines of text and JSONL files, one at a time."""

import codecs
from collections.abc import Iterator, Sequence
import contextlib
import json
import sys
from typing import BinaryIO, NamedTuple

from etils import epath

STANDARD_INPUT = '-'
FORMATS = TEXT, JSONL = 'text', 'jsonl'


class Line(NamedTuple):
  """A line of a file.

  Attributes:
    place: name of the file and number of the line, for errors.
    text: without the newline; of a JSON object the text of its field.
  """

  place: str
  text: str


def check(paths: Sequence[str], file_format: str | None) -> None:
  """Checks the names of files and of their format; reads nothing.

  Raises:
    ValueError: if there is no file, a file is missing, or the format is
      unknown.
  """
  if not paths:
    raise ValueError('No input file was given. Give one, or several.')
  if file_format not in (None, *FORMATS):
    raise ValueError(
        f'The input format {file_format!r} is unknown. Give one of'
        f' {", ".join(FORMATS)}, or None to go by the names of the files.'
    )
  for path in paths:
    if path != STANDARD_INPUT and not epath.Path(path).is_file():
      remedy = 'Correct its name'
      if epath.Path(path).is_dir():
        remedy = 'It is a folder: name the files in it'
      raise ValueError(f'There is no input file {path}. {remedy}.')


def read(
    paths: Sequence[str], *, field: str, file_format: str | None = None
) -> Iterator[Line]:
  """Yields the lines of files, one file after another.

  A line ends with a newline, or a carriage return and a newline, and with
  nothing else that Unicode counts as an end of line. A byte-order mark is no
  part of the first line.

  Args:
    paths: of files, local or remote; '-' is the standard input.
    field: of the JSON objects in JSONL files.
    file_format: 'text' or 'jsonl'; None for JSONL where the name of a file
      ends in .jsonl, and text elsewhere.
  Raises:
    ValueError: naming file and line, for a file without lines, a line that is
      not UTF-8, or an object without the field.
  """
  for path in paths:
    is_json = (file_format or _format_of(path)) == JSONL
    name = 'standard input' if path == STANDARD_INPUT else path
    number = 0
    with _open(path) as file:
      for number, data in enumerate(file, start=1):
        place = f'{name}, line {number}'
        if number == 1:
          data = data.removeprefix(codecs.BOM_UTF8)
        text = _decode(data, place)
        yield Line(place, _field_of(text, field, place) if is_json else text)
    if not number:
      raise ValueError(f'{name} is empty. Give at least one line.')


def _format_of(path: str) -> str:
  return JSONL if path.endswith(f'.{JSONL}') else TEXT


def _open(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
  if path == STANDARD_INPUT:
    return contextlib.nullcontext(sys.stdin.buffer)
  return epath.Path(path).open('rb')


def _decode(data: bytes, place: str) -> str:
  try:
    return data.removesuffix(b'\n').removesuffix(b'\r').decode()
  except UnicodeDecodeError as error:
    raise ValueError(
        f'{place} is not UTF-8 text. Save the file as UTF-8.'
    ) from error


def _field_of(text: str, field: str, place: str) -> str:
  """Returns the text of a field of a JSON object."""
  try:
    found = json.loads(text)
  except (ValueError, RecursionError):
    found = None
  if not isinstance(found, dict):
    raise ValueError(f'{place} is not a JSON object. Write one per line.')
  if field not in found:
    raise ValueError(
        f'{place} has no field {field!r}; it has {", ".join(found) or "none"}.'
        ' Set INPUT_FIELD to the one to decode.'
    )
  value = found[field]
  if not isinstance(value, str) or not _is_encodable(value):
    raise ValueError(
        f'{place}: the field {field!r} is not a Unicode text. Write it as a'
        ' string.'
    )
  return value


def _is_encodable(text: str) -> bool:
  """Returns whether a text has no lone surrogates, which JSON can spell."""
  try:
    text.encode()
  except UnicodeEncodeError:
    return False
  return True
