# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the lines of text and JSONL files."""

import codecs
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
import os
import sys
from typing import Any, BinaryIO, TypeVar

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.speculation import ranges

STANDARD_INPUT = '-'
HINTS = 'hints'  # the field of hints that objects may lack
TEXT, JSONL, BATCH = 'text', 'jsonl', 'batch'
# Ends of the names of files of JSON lines, in small letters.
_JSON_NAMES = ('.jsonl', '.ndjson', '.json')
_NOT_UTF8 = (
    'it is not UTF-8. Convert the file, as by iconv -f latin1 -t utf-8, and'
    ' decompress it first if it is compressed.'
)

_Row = TypeVar('_Row')


@dataclasses.dataclass(frozen=True)
class TextLine:
  """A line of a file."""

  place: str  # the name of the file and the number of the line, for errors
  text: str  # without the newline, or that of a JSON object's field
  hints: Sequence[str] = ()  # texts of the object that the output may repeat
  # All fields of the object but that of the text.
  fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def check(
    paths: Sequence[str],
    file_format: str | None,
    field: str,
    taken: Collection[str] = (),
) -> None:
  """Check the first line with text of each file.

  The standard input is not read, nor lines of a batch, each of which has errors
  of its own. Arguments and errors are those of `read`.
  """
  if not paths:
    raise ranges.ArgumentError('No input file was given.', inputs=paths)
  for path in paths:
    if path == STANDARD_INPUT:
      continue
    if file_format == BATCH:
      next(read_bytes([path]), None)
    else:
      lines = read([path], field=field, file_format=file_format, taken=taken)
      next((line for line in lines if line.text.strip()), None)


def read(
    paths: Sequence[str],
    *,
    field: str,
    file_format: str | None = None,
    taken: Collection[str] = (),
) -> Iterator[TextLine]:
  """Yield the lines of files, one file after another.

  A line ends with a newline, or a carriage return and a newline, and with
  nothing else that Unicode counts as an end of line. A byte-order mark is no
  part of the first line. A blank line of a JSONL file is a line without text.

  Args:
    paths: Paths of files, local or remote; '-' is the standard input.
    field: The field of the texts in the objects of JSONL files. Their hints, if
      any, are in the field 'hints': a text, a list of texts, or null.
    file_format: `TEXT` or `JSONL`; None for JSONL where the name of a file
      ends in .jsonl, .ndjson or .json, and text elsewhere.
    taken: Names that other fields of the objects may not have.
  """
  for path in paths:
    for number, data in enumerate(read_bytes([path]), start=1):
      place = f'{_name_of(path)}, line {number}'
      try:
        text = data.decode()
        line = TextLine(place, text)
        if text.strip() and _is_json(path, file_format):
          line = _parse(_value(text), field, taken, place)
      except ValueError as error:
        is_text = not isinstance(error, UnicodeDecodeError)
        raise ranges.ArgumentError(
            f'{place}: {error if is_text else _NOT_UTF8}',
            **getattr(error, 'arguments', {}),
        ) from error
      yield line


def read_bytes(paths: Sequence[str]) -> Iterator[bytes]:
  """Yield the lines of files, without what ends them; see `read`."""
  for path in paths:
    with _open(path) as file:
      for number, data in enumerate(file):
        if number == 0:
          data = data.removeprefix(codecs.BOM_UTF8)
        yield data.removesuffix(b'\n').removesuffix(b'\r')


def read_rows(
    path: str | os.PathLike[str],
    parse: Callable[[Any], _Row],
    wanted: str,
    remedy: str,
) -> list[_Row]:
  """Read the rows of a data set of JSON lines; blank lines are left out.

  `parse` returns what is kept of a value, and may raise KeyError, TypeError or
  ValueError for one that is not a row. Errors say what is wanted, and the
  remedy.
  """
  path = user_paths.expand(path)
  rows = []
  with path.open('rb') as file:
    for number, line in enumerate(file, start=1):
      try:
        if line.strip():
          rows.append(parse(json.loads(line)))
      except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f'{path}, line {number} is not {wanted} ({type(error).__name__}:'
            f' {errors.first_line(error)}). {remedy}'
        ) from error
  return rows


def _is_json(path: str, file_format: str | None) -> bool:
  if file_format is None:
    return path.lower().endswith(_JSON_NAMES)
  return file_format == JSONL


def _name_of(path: str) -> str:
  return 'standard input' if path == STANDARD_INPUT else path


def _value(text: str) -> Any:
  """Return the value of JSON; the error if it is none."""
  try:
    return json.loads(text)
  except (ValueError, RecursionError) as error:
    return error


def _open(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
  if path == STANDARD_INPUT:
    return contextlib.nullcontext(sys.stdin.buffer)
  return user_paths.expand(path).open('rb')


def _parse(
    found: Any,
    field: str,
    taken: Collection[str],
    place: str,
) -> TextLine:
  fields = dict(found) if isinstance(found, dict) else {}
  text = fields.pop(field, None)
  hints = fields.get(HINTS)
  hints = [] if hints is None else hints
  hints = hints if isinstance(hints, list) else [hints]
  clashing = sorted(fields.keys() & set(taken))
  problem = None
  if not isinstance(found, dict):
    why = f' ({found})' if isinstance(found, Exception) else ''
    problem = f'it is not a JSON object{why}. Write one per line'
  elif not isinstance(text, str):
    problem = (
        f'the field {field!r} is not a text; it has'
        f' {errors.listing(list(map(errors.shown, found))) or "none"}. Set'
        ' input_field to the one to decode'
    )
    if {'custom_id', 'body'} <= found.keys():
      problem += f", or input_format to {BATCH!r} for a batch of OpenAI's"
  elif not all(isinstance(hint, str) for hint in hints):
    problem = (
        f'the field {HINTS!r} is not a text, a list of texts or null. Rename it'
    )
  elif clashing:
    problem = (
        f'the field {clashing[0]!r} is written beside the fields of the input.'
        ' Rename it'
    )
  if problem:
    raise ranges.ArgumentError(
        f'{problem}.', input_field=field, input_format=None
    )
  # JSON can spell lone surrogates and numbers that are not finite, and the
  # fields are written again.
  json_files.dumps(found)
  return TextLine(place, text, hints, fields)
