# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads what gin files set, use and import, without running what they name.

Gin's own parser reads them, so that a file is valid here if it is for gin.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
import difflib
import tokenize

from etils import epath
from gin import config_parser

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.loading.files import user_paths


class _Reference(str):
  """A macro or a function in a value, written as in a gin file."""

  __repr__ = str.__str__


class _References(config_parser.ParserDelegate):
  """Keeps the references that the parser meets."""

  def __init__(self):
    self.met: list[_Reference] = []

  def configurable_reference(self, scoped_configurable_name, evaluate):
    return self._keep(f'@{scoped_configurable_name}{"()" if evaluate else ""}')

  def macro(self, macro_name):
    return self._keep(f'%{macro_name}')

  def _keep(self, text: str) -> _Reference:
    self.met.append(_Reference(text))
    return self.met[-1]

  def macros(self) -> set[str]:
    """Return the names of the macros met; not gin's constants, with a dot."""
    return {x[1:] for x in self.met if x[0] == '%' and '.' not in x}


@dataclasses.dataclass
class Macros:
  """The macros of some gin files and of all that they include, by name."""

  # File and line where each is set, and the text of its value.
  places: dict[str, str] = dataclasses.field(default_factory=dict)
  values: dict[str, str] = dataclasses.field(default_factory=dict)
  # Those that values refer to.
  used: set[str] = dataclasses.field(default_factory=set)
  files: set[epath.Path] = dataclasses.field(default_factory=set)

  @property
  def mentioned(self) -> set[str]:
    """Names of the macros that are set or used."""
    return {*self.places, *self.used}


def did_you_mean(name: str, known: Iterable[str], folder: str = '') -> str:
  """Return a hint at the known name that is nearest, empty without one."""
  close = difflib.get_close_matches(name, sorted(known), n=1)
  return f' Did you mean {folder}{close[0]}?' if close else ''


def find(name: str, search_paths: Sequence[str]) -> epath.Path:
  """Return the path of a gin file, from the first folder that has it.

  The name is a path, relative to one of the folders or absolute, or a URL.
  """
  path = user_paths.expand(name)
  folders = ['.'] if path.is_absolute() else search_paths
  paths = [user_paths.expand(folder) / path for folder in folders]
  for path in paths:
    if path.is_file():
      return path
  beside = {p.name for each in paths for p in each.parent.glob('*.gin')}
  folder, slash, own = name.rpartition('/')
  raise commands.UsageError(
      f'there is no gin file {name!r} in {", ".join(folders)}.'
      + (
          did_you_mean(own, beside, folder + slash)
          or ' Correct its name, or give its folder:'
          ' --gin_search_paths=<folder>.'
      )
  )


def read_macros(names: Sequence[str], search_paths: Sequence[str]) -> Macros:
  """Return the macros of gin files and of all files that they include."""
  macros, references = Macros(), _References()
  for path, text in (x for name in names for x in texts(name, search_paths)):
    macros.files.add(path)
    for statement in config_parser.ConfigParser(text, references):
      is_binding = isinstance(statement, config_parser.BindingStatement)
      if is_binding and not statement.arg_name:
        macro = '/'.join(filter(None, (statement.scope, statement.selector)))
        line = statement.location.line_num
        macros.places[macro] = f'{path}, line {line}'
        macros.values[macro] = repr(statement.value)
  macros.used = references.macros()
  return macros


def texts(
    name: str,
    search_paths: Sequence[str],
    including: tuple[epath.Path, ...] = (),
) -> Iterator[tuple[epath.Path, str]]:
  """Yield the texts of a file and of what it includes, in their order.

  Each is the path of a file and a part of its text, between includes, with the
  imports before it. Lines have the numbers that they have in the file. The
  files that include this one are given from the outermost on.
  """
  path = find(name, search_paths)
  if path in including:
    chain = ' and '.join(map(str, including[including.index(path) :]))
    raise commands.UsageError(f'{chain} includes itself. Remove the include.')
  with _one_line_errors(str(path)):
    text = path.read_text(encoding='utf-8')
    statements = list(config_parser.ConfigParser(text, _References()))
  lines = text.splitlines(keepends=True)
  imports, begin = set(), 0

  def part(end: int) -> tuple[epath.Path, str]:
    kept = imports | set(range(begin, end))
    shown = [x if i in kept else '\n' for i, x in enumerate(lines[:end])]
    return path, ''.join(shown)

  for statement in statements:
    line = statement.location.line_num - 1
    match statement:
      case config_parser.ImportStatement():
        imports.add(line)
      case config_parser.IncludeStatement(filename=inner):
        yield part(line)
        yield from texts(inner, search_paths, (*including, path))
        begin = line + 1
  yield part(len(lines))


def macros_in(value: str, source: str = '') -> set[str]:
  """Return the names of the macros that a gin value refers to."""
  found = _References()
  with _one_line_errors(source):
    config_parser.ConfigParser(value, found).parse_value()
  return found.macros()


@contextlib.contextmanager
def _one_line_errors(source: str) -> Iterator[None]:
  """Turn the parser's errors to one line with the place."""
  try:
    yield
    return
  except UnicodeDecodeError as error:
    line = error.object[: error.start].count(b'\n') + 1
    text = 'not UTF-8 text; save the file as UTF-8'
  except SyntaxError as error:
    # The last line names the token; the first is a message of Python's parser.
    line, text = error.lineno, error.msg.splitlines()[-1].strip().rstrip('.')
    if text.startswith('Failed to parse token'):
      text += '; strings need quotes'
  except tokenize.TokenError as error:
    text, (line, _) = error.args
  raise commands.UsageError(f'{source} cannot be read, line {line}: {text}.')
