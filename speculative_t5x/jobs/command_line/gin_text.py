# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds what gin files set, use and import, without gin.

Gin ignores a macro that is not used, so a misspelt name would go unnoticed.
Files are checked here before gin reads them.
"""

import ast
from collections.abc import Iterator, Sequence
import dataclasses
import difflib
import io
import pathlib
import tokenize

_IGNORED = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


class GinFileError(ValueError):
  """A gin file is missing or cannot be read as text."""


@dataclasses.dataclass
class Macros:
  """The macros of some gin files, and the other names in them.

  Attributes:
    places: file and line where each macro is set, by its name.
    values: text of the value of each macro that is set, by its name.
    used: names of the macros that values refer to.
    names: place of each imported module and of each name with a dot.
  """

  places: dict[str, str] = dataclasses.field(default_factory=dict)
  values: dict[str, str] = dataclasses.field(default_factory=dict)
  used: set[str] = dataclasses.field(default_factory=set)
  names: dict[str, str] = dataclasses.field(default_factory=dict)

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
  paths = [pathlib.Path(folder) / name for folder in search_paths]
  for path in paths:
    if path.is_file():
      return path
  beside = {p.name for each in paths for p in each.parent.glob('*.gin')}
  wanted = pathlib.Path(name)
  near = difflib.get_close_matches(wanted.name, sorted(beside), n=1)
  remedy = (
      f'Did you mean {wanted.parent / near[0]}?'
      if near
      else 'Correct its name, or give its folder: --gin_search_paths=<folder>.'
  )
  raise GinFileError(
      f'there is no gin file {name!r} in {", ".join(search_paths)}. {remedy}'
  )


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
  return {name for line in _lines(value) for name in _references(line, '%')}


def references_in(value: str) -> set[str]:
  """Returns the scopes and modules of the functions that a value refers to."""
  return {name for line in _lines(value) for name in _references(line, '@')}


def _add_file(
    macros: Macros,
    path: pathlib.Path,
    search_paths: Sequence[str],
    including: tuple[pathlib.Path, ...],
) -> None:
  """Adds a file and its includes, given the chain of files that include it."""
  if path in including:
    chain = ' and '.join(map(str, including[including.index(path) :]))
    raise GinFileError(f'{chain} includes itself. Remove the include.')
  try:
    text = path.read_text(encoding='utf-8')
  except UnicodeDecodeError as error:
    number = error.object[: error.start].count(b'\n') + 1
    raise GinFileError(
        f'{path}, line {number} is not UTF-8 text. Save the file as UTF-8.'
    ) from error
  for line in _lines(text):
    first, *rest = line
    place = f'{path}, line {first.start[0]}'
    macros.used.update(_references(line, '%'))
    macros.names |= dict.fromkeys(_names(line), place)
    if first.string == 'include' and rest and rest[0].type == tokenize.STRING:
      inner = find(ast.literal_eval(rest[0].string), search_paths)
      _add_file(macros, inner, search_paths, (*including, path))
    elif first.start[1] == 0 and (name := _set_by(line)):
      macros.places[name] = place
      macros.values[name] = _value(text, line)


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
  name = _name(line, '/')
  parts = name.count('/') * 2 + 1
  is_set = len(line) > parts and line[parts].string == '='
  return name if is_set else None


def _value(text: str, line: list[tokenize.TokenInfo]) -> str:
  """Returns the text behind the equals sign, in one line."""
  start = next(i for i, token in enumerate(line) if token.string == '=') + 1
  rows = text.splitlines(keepends=True)
  (first, begin), (last, end) = line[start].start, line[-1].end
  rows = [*rows[first - 1 : last - 1], rows[last - 1][:end]]
  rows[0] = rows[0][begin:]
  return ' '.join(' '.join(rows).split())


def _references(line: list[tokenize.TokenInfo], mark: str) -> Iterator[str]:
  """Yields the names behind a mark, with their scopes.

  Those of Gin's constants, as `%gin.REQUIRED`, are left out.
  """
  for index, token in enumerate(line):
    if token.string == mark:
      name = _name(line[index + 1 :], '/')
      behind = line[index + 2 + 2 * name.count('/') :]
      if mark == '@' or not behind or behind[0].string != '.':
        yield name


def _names(line: list[tokenize.TokenInfo]) -> Iterator[str]:
  """Yields the module that a statement imports, or its names with dots."""
  if line[0].string == 'from':
    module = _name(line[1:], '.')
    # Behind "from", the parts of the module and their dots, and "import"
    yield f'{module}.{_name(line[3 + 2 * module.count(".") :], ".")}'
    return
  for index, token in enumerate(line):
    if token.type == tokenize.NAME:
      yield _name(line[index:], '.')


def _name(tokens: list[tokenize.TokenInfo], separator: str) -> str:
  """Returns the name at the beginning: words with a separator in between."""
  parts = []
  for token in tokens:
    is_word_due = len(parts) % 2 == 0
    is_word = token.type == tokenize.NAME
    if is_word != is_word_due or not is_word and token.string != separator:
      break
    parts.append(token.string)
  return ''.join(parts)
