# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the flags of a command, which are those of T5X's scripts."""

import ast
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import re

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import gin_text
from speculative_t5x.jobs.command_line import macro_names
from speculative_t5x.loading.files import user_paths

_GIN = '--gin.'
_PART = re.compile(r'(table|figure)\d')
# A word or a path, from which a shell removes quotes. After a slash there may
# be anything, for no other value has one outside of quotes.
_BARE_STRING = re.compile(
    r'-|[./~].*|\w[^\'"()\[\]{}%@]*(/.*)?', re.DOTALL
)


@dataclasses.dataclass
class Flags:
  """The flags of a command; see `commands.CommandLine`."""

  parts: list[str]  # names of the parts of a job with several
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
    if job.folder is not None and not flag.startswith('-'):
      parts.append(flag)
      continue
    if not is_binding and key not in known:
      raise commands.UsageError(_unknown(flag, job, known))
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
  if job.folder is not None:
    return _parts(job, given)
  return [
      commands.CommandLine(
          job,
          job.function,
          tuple(_in_order(job, given)),
          given.folders,
          given.bindings,
      )
  ]


def _in_order(job: commands.Job, given: Flags) -> list[str]:
  """Return the gin files in the order in which they are read.

  The job's own comes first, and then those that include it, as complete runs
  do: they would undo the settings of tasks, drafters and rules before them.
  """
  own = gin_text.find(job.gin_file, given.folders)
  files = [job.gin_file, *(x for x in given.gin_files if x != job.gin_file)]
  includes_own = lambda x: own in gin_text.read_macros([x], given.folders).files
  return sorted(files, key=includes_own, reverse=True)


def _parts(job: commands.Job, given: Flags) -> list[commands.CommandLine]:
  """Return what the named parts of a job need first, and then the parts."""

  def line(function, file, *more):
    files, bindings = (file, *given.gin_files), (*given.bindings, *more)
    return commands.CommandLine(job, function, files, given.folders, bindings)

  names = _sorted_parts(job, given.parts)
  found = [
      line(f'{job.function}.{name}', part_file(job, name)) for name in names
  ]
  needed = tuple(name for name in names if name in job.needs_first)
  if needed:
    found.insert(0, line(*job.first, ('TABLES', repr(needed))))
  return found


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


def part_file(job: commands.Job, part: str) -> str:
  """Return the gin file of a part of a job, as of a table of the paper."""
  known = [*_sorted_parts(job, ()), *job.by_name]
  if part not in known:
    raise commands.UsageError(
        f'there is no {part!r}. Choose from: {", ".join(known)}.'
    )
  return f'{job.folder}/{part}.gin'


def _sorted_parts(job: commands.Job, named: Sequence[str]) -> list[str]:
  """Return the named parts of a job in order, or all if none is named."""
  stems = {pathlib.Path(x).stem for x in macro_names.gin_files(job.folder)}
  names = {name for name in stems if _PART.fullmatch(name)}
  # Figures come last, because they show measurements of the tables.
  is_figure = lambda name: (name.startswith('figure'), name)
  return sorted({*named} or names, key=is_figure)


def _unknown(flag: str, job: commands.Job, known: Sequence[str]) -> str:
  """Return the message for an argument that no command can have."""
  name, _, value = flag.partition('=')
  meant = name.removeprefix('--').upper().replace('-', '_')
  hint = gin_text.did_you_mean(name, known)
  if not flag.startswith('-'):
    return f'the argument {flag!r} is unknown.{hint}\n{commands.USAGE}'
  macros = gin_text.read_macros([job.gin_file], commands.ROOTS).mentioned
  macros |= macro_names.providers().keys()
  hint = hint or gin_text.did_you_mean(
      meant, macros, f'{_GIN}{{}}={value or "VALUE"}'
  )
  return f'the flag {flag!r} is unknown.{hint}\n{commands.USAGE}'
