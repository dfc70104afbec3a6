# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the flags of a command, which are those of T5X's scripts."""

import ast
from collections.abc import Collection, Sequence
import dataclasses
import os
import re

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import gin_text
from speculative_t5x.loading.files import user_paths

_GIN = '--gin.'
# A word or a path, from which a shell removes quotes. After a slash there may
# be anything, for no other value has one outside of quotes.
_BARE_STRING = re.compile(
    r'-|[./~].*|\w[^\'"()\[\]{}%@]*(/.*)?', re.DOTALL
)


@dataclasses.dataclass
class Flags:
  """The flags of a command; see `commands.CommandLine`."""

  parts: list[str]  # named parts of the paper
  gin_files: list[str]
  folders: tuple[str, ...]
  bindings: tuple[tuple[str, str], ...]


def read(job: commands.Job, arguments: Sequence[str]) -> Flags:
  """Return the flags of a command, --NAME=VALUE or --NAME VALUE."""
  macros = {f'--{each}': each.upper() for each in job.flags}
  if job.output_macro:
    macros['--output_dir'] = job.output_macro
  known = ['--gin_file', '--gin_search_paths', *macros]
  files, paths, bindings, parts = [], [], [], []
  rest = list(arguments)
  while rest:
    flag = rest.pop(0)
    key, equals, value = flag.partition('=')
    is_binding = key.startswith(_GIN)
    if job is commands.JOBS['paper'] and not flag.startswith('-'):
      parts.append(flag)
      continue
    if not is_binding and key not in known:
      kind = 'flag' if flag.startswith('-') else 'argument'
      hint = gin_text.did_you_mean(key, known)
      raise commands.UsageError(
          f'the {kind} {flag!r} is unknown.{hint}\n{commands.USAGE}'
      )
    if not equals and rest and not rest[0].startswith('--'):
      value = rest.pop(0)
    if not value.strip():
      raise commands.UsageError(
          f'{flag!r} has no value. Write {key}=VALUE; a shell variable in it'
          f' may be unset.\n{commands.USAGE}'
      )
    if is_binding:
      bindings.append((key.removeprefix(_GIN), gin_value(key, value)))
    elif key == '--gin_file':
      files.append(os.fspath(user_paths.expand(value)))
    elif key == '--gin_search_paths':
      paths.extend(os.fspath(user_paths.expand(x)) for x in value.split(','))
    else:
      bindings.append((macros[key], repr(value)))
  return Flags(parts, files, (*paths, '.', *commands.ROOTS), tuple(bindings))


def parse(argv: Sequence[str]) -> list[commands.CommandLine]:
  """Return the command lines to run, one after another.

  `argv` is a command, its flags, and for some commands names of parts.
  """
  name, *arguments = argv
  job = commands.JOBS.get(name)
  if job is None:
    choices = f' Choose from: {", ".join(commands.JOBS)}.'
    hint = gin_text.did_you_mean(name, commands.JOBS) or choices
    raise commands.UsageError(
        f'there is no command {name!r}.{hint}\n{commands.USAGE}'
    )
  given = read(job, arguments)
  jobs = {job: ()}
  if name == 'paper':
    names = given.parts or commands.PARTS
    jobs = paper_jobs(names)
  return [
      commands.CommandLine(
          each,
          _in_order(each, given),
          given.folders,
          (*given.bindings, *more),
      )
      for each, more in jobs.items()
  ]


def _in_order(job: commands.Job, given: Flags) -> tuple[str, ...]:
  """Return the gin files in the order in which they are read.

  The job's own comes first, and then those that include it, as complete runs
  do: they would undo the settings of tasks, drafters and rules before them.
  """
  own = gin_text.find(job.gin_file, given.folders)
  files = [job.gin_file, *(x for x in given.gin_files if x != job.gin_file)]
  includes_own = lambda x: own in gin_text.read_macros([x], given.folders).files
  return tuple(sorted(files, key=includes_own, reverse=True))


def paper_jobs(
    names: Collection[str],
) -> dict[commands.Job, tuple[tuple[str, str], ...]]:
  """Return the jobs of parts of the paper in order, with further bindings."""
  for name in names:
    if name not in commands.PARTS:
      raise commands.UsageError(
          f'there is no {name!r}. Choose from: {", ".join(commands.PARTS)}.'
      )
  tables = tuple(x for x in commands.TABLES_OF_PAIRS if x in names)
  first = {commands.PAIRS: (('TABLES', repr(tables)),)} if tables else {}
  return first | {x: () for name, x in commands.PARTS.items() if name in names}


def gin_value(flag: str, text: str) -> str:
  """Return a flag's value in gin's syntax; quote a bare path or word."""
  try:
    value = ast.literal_eval(text)
  except (SyntaxError, ValueError):
    return repr(text) if _BARE_STRING.fullmatch(text) else text
  # Commas without parentheses are a tuple in Python, but an error in gin.
  if isinstance(value, tuple) and ast.literal_eval(f'[{text}]') != [value]:
    raise commands.UsageError(
        f'{flag}={text} cannot be read: several values need parentheses.'
        f" Write {flag}='({text})'."
    )
  return text
