# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the macros that gin files set and use, without gin.

Gin ignores a macro that is not used, so a misspelt name would go unnoticed.
Files are checked here before gin reads them.
"""

import ast
from collections.abc import Iterator, Sequence
import dataclasses
import difflib
import io
import itertools
import pathlib
import tokenize

_IGNORED = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


class GinFileError(ValueError):
  """A gin file is missing or cannot be read as text."""


@dataclasses.dataclass
class Macros:
  """The macros of some gin files.

  Attributes:
    places: file and line where each macro is set, by its name.
    used: names of the macros that values refer to.
  """

  places: dict[str, str] = dataclasses.field(default_factory=dict)
  used: set[str] = dataclasses.field(default_factory=set)

  @property
  def mentioned(self) -> set[str]:
    """Names of the macros that are set or used."""
    return {*self.places, *self.used}


def find(name: str, search_paths: Sequence[str]) -> pathlib.Path:
  """Returns the path of a gin file.

  Args:
    name: path of the file in a flag or an include.
    search_paths: folders, in the order in which gin searches them.
  Raises:
    GinFileError: if the file is in no folder.
  """
  for folder in search_paths:
    path = pathlib.Path(folder) / name
    if path.is_file():
      return path
  if not name:
    raise GinFileError(
        'the name of a gin file is empty. Give a name; a shell variable may be'
        ' unset.'
    )
  remedy = 'Correct its name, or give its folder: --gin_search_paths=<folder>.'
  path = pathlib.Path(name)
  if near := difflib.get_close_matches(path.name, _beside(path, search_paths)):
    remedy = f'Did you mean {path.parent / near[0]}?'
  raise GinFileError(
      f'there is no gin file {name} in {", ".join(search_paths)}. {remedy}'
  )


def _beside(path: pathlib.Path, search_paths: Sequence[str]) -> list[str]:
  """Returns the names of the gin files in the folders that are searched."""
  folders = [pathlib.Path(root) / path.parent for root in search_paths]
  return sorted({each.name for f in folders for each in f.glob('*.gin')})


def read_macros(names: Sequence[str], search_paths: Sequence[str]) -> Macros:
  """Returns the macros of gin files and of all files that they include.

  Args:
    names: paths of the files.
    search_paths: see `find`.
  Raises:
    GinFileError: for a file that is missing, is not UTF-8 or includes itself.
    tokenize.TokenError: if a text is not gin.
    SyntaxError: if a text is not gin.
  """
  macros = Macros()
  for name in names:
    _add_file(macros, find(name, search_paths), search_paths, ())
  return macros


def used_in(value: str) -> set[str]:
  """Returns the names of the macros that a gin value refers to."""
  return {name for line in _lines(value) for name in _references(line)}


def _add_file(
    macros: Macros,
    path: pathlib.Path,
    search_paths: Sequence[str],
    including: tuple[pathlib.Path, ...],
) -> None:
  """Adds a file and its includes, given the chain of files that include it."""
  if path in including:
    chain = including[including.index(path) + 1 :]
    through = f' through {", ".join(map(str, chain))}' if chain else ''
    raise GinFileError(
        f'{path} includes itself{through}. Remove one of these includes.'
    )
  for line in _lines(_read(path)):
    macros.used.update(_references(line))
    first, *rest = line
    if first.string == 'include' and rest and rest[0].type == tokenize.STRING:
      inner = find(ast.literal_eval(rest[0].string), search_paths)
      _add_file(macros, inner, search_paths, (*including, path))
    elif first.start[1] == 0 and (name := _set_by(line)):
      macros.places[name] = f'{path}, line {first.start[0]}'


def _read(path: pathlib.Path) -> str:
  try:
    return path.read_text(encoding='utf-8')
  except UnicodeDecodeError as error:
    line = error.object[: error.start].count(b'\n') + 1
    raise GinFileError(
        f'{path}, line {line} is not UTF-8 text. Save the file as UTF-8.'
    ) from error


def _lines(text: str) -> Iterator[list[tokenize.TokenInfo]]:
  """Yields the tokens of each statement, which may span several lines."""
  line = []
  for token in tokenize.generate_tokens(io.StringIO(text).readline):
    if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
      if line:
        yield line
      line = []
    elif token.type not in _IGNORED:
      line.append(token)


def _set_by(line: list[tokenize.TokenInfo]) -> str | None:
  """Returns the macro that a statement sets, None if it sets a parameter."""
  name = _name(line)
  parts = name.count('/') * 2 + 1
  is_set = len(line) > parts and line[parts].string == '='
  return name if is_set else None


def _references(line: list[tokenize.TokenInfo]) -> Iterator[str]:
  for index, token in enumerate(line):
    if token.string == '%':
      yield _name(line[index + 1 :])


def _name(tokens: list[tokenize.TokenInfo]) -> str:
  """Returns the name at the beginning, with its scope."""
  parts = itertools.takewhile(
      lambda token: token.type == tokenize.NAME or token.string == '/', tokens
  )
  return ''.join(token.string for token in parts)
