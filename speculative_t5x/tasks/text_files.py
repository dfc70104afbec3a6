# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the lines of text and JSONL files, one at a time."""

import codecs
from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import json
import sys
import types
from typing import Any, BinaryIO, NamedTuple

from etils import epath

from speculative_t5x.loading.files import json_lines

STANDARD_INPUT = '-'
HINTS = 'hints'  # the field of hints that objects may lack
FORMATS = TEXT, JSONL = 'text', 'jsonl'


class Line(NamedTuple):
  """A line of a file.

  Attributes:
    place: The name of the file and the number of the line, for errors.
    text: The text without the newline, or that of a JSON object's field.
    hints: Texts in a JSON object that the output may repeat.
    fields: All fields of a JSON object but that of the text.
  """

  place: str
  text: str
  hints: tuple[str, ...] = ()
  fields: Mapping[str, Any] = types.MappingProxyType({})


def check(
    paths: Sequence[str],
    file_format: str | None,
    hints_field: str | None = HINTS,
) -> None:
  """Check the names of files and of their format; read nothing.

  Raises:
    ValueError: if there is no file, a file is missing, the format is unknown,
      or lines of text should have a field of hints.
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
    is_named = hints_field not in (None, HINTS)
    if is_named and not _is_json(path, file_format):
      raise ValueError(
          f'Lines of {_name_of(path)} are text and have no field'
          f' {hints_field!r}. Give hints in JSONL files, or set'
          " INPUT_FORMAT='jsonl', or leave out HINTS_FIELD."
      )


def read(
    paths: Sequence[str],
    *,
    field: str,
    hints_field: str | None = HINTS,
    file_format: str | None = None,
    taken: Collection[str] = (),
) -> Iterator[Line]:
  """Yield the lines of files, one file after another.

  A line ends with a newline, or a carriage return and a newline, and with
  nothing else that Unicode counts as an end of line. A byte-order mark is no
  part of the first line. A blank line of a JSONL file is a line without text.

  Args:
    paths: Paths of files, local or remote; '-' is the standard input.
    field: The field of the texts in the objects of JSONL files.
    hints_field: The field of their hints: a text, a list of texts, or null. An
      object may lack 'hints' and no other field. None to read no hints.
    file_format: 'text' or 'jsonl'; None for JSONL where the name of a file
      ends in .jsonl, and text elsewhere.
    taken: Names that other fields of the objects may not have.
  Raises:
    ValueError: naming file and line, for a file without lines, a line that is
      not UTF-8, an object without a field or with another type of value, or
      other fields that have a name of `taken` or are not strict JSON.
  """
  for path in paths:
    is_json = _is_json(path, file_format)
    name = _name_of(path)
    number = 0
    with _open(path) as file:
      for number, data in enumerate(file, start=1):
        place = f'{name}, line {number}'
        if number == 1:
          data = data.removeprefix(codecs.BOM_UTF8)
        try:
          text = data.removesuffix(b'\n').removesuffix(b'\r').decode()
        except UnicodeDecodeError as error:
          raise ValueError(
              f'{place} is not UTF-8 text. Save the file as UTF-8.'
          ) from error
        if is_json and text.strip():
          yield _parse(text, field, hints_field, taken, place)
        else:
          yield Line(place, text)
    if not number:
      raise ValueError(f'{name} is empty. Give at least one line.')


def _is_json(path: str, file_format: str | None) -> bool:
  if file_format is None:
    return path.endswith(f'.{JSONL}')
  return file_format == JSONL


def _name_of(path: str) -> str:
  return 'standard input' if path == STANDARD_INPUT else path


def _open(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
  if path == STANDARD_INPUT:
    return contextlib.nullcontext(sys.stdin.buffer)
  return epath.Path(path).open('rb')


def _parse(
    text: str,
    field: str,
    hints_field: str | None,
    taken: Collection[str],
    place: str,
) -> Line:
  """Return what a JSON object holds."""
  try:
    found = json.loads(text)
  except (ValueError, RecursionError):
    found = None
  if not isinstance(found, dict):
    raise ValueError(f'{place} is not a JSON object. Write one per line.')
  needed = {field: 'INPUT_FIELD to the one to decode'}
  if hints_field not in (None, HINTS):
    needed[hints_field] = 'HINTS_FIELD to that of the hints'
  for name, remedy in needed.items():
    if name not in found:
      raise ValueError(
          f'{place} has no field {name!r}; it has {", ".join(found) or "none"}.'
          f' Set {remedy}.'
      )
  value = found.pop(field)
  hints = None if hints_field is None else found.get(hints_field)
  texts = hints if isinstance(hints, list) else [hints]
  texts = [] if hints is None else texts
  for name, given in ((field, [value]), (hints_field, texts)):
    # JSON can spell lone surrogates, and UTF-8 cannot.
    if not all(isinstance(x, str) and _is_strict(x) for x in given):
      raise ValueError(
          f'{place}: the field {name!r} is not a Unicode text. Write it as a'
          ' string, and hints as a list of strings or null; or set INPUT_FIELD'
          ' or HINTS_FIELD to another field.'
      )
  if clashing := found.keys() & set(taken):
    raise ValueError(
        f'{place} has the field {min(clashing)!r}, which is written beside the'
        ' fields of the input. Rename it.'
    )
  if not _is_strict(found):
    raise ValueError(
        f'{place} holds a number that is not finite, or text that is not'
        ' Unicode, and its fields are written again. Correct it.'
    )
  return Line(place, value, tuple(texts), found)


def _is_strict(value: Any) -> bool:
  """Return whether any reader of JSON can read a value."""
  try:
    json_lines.dumps(value)
  except ValueError:
    return False
  return True
