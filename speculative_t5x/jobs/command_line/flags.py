# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the flags of a command, which are those of T5X's scripts."""

import ast
from collections.abc import Sequence
import functools
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


def parse(argv: Sequence[str]) -> list[commands.CommandLine]:
  """Return the command lines to run, one after another.

  Args:
    argv: A command, its flags, and for some commands names of parts.
  Raises:
    commands.UsageError: for an unknown command, flag or part, or a flag without
      a value.
  """
  name, *flags = argv
  job = commands.JOBS.get(name)
  if job is None:
    choices = f' Choose from: {", ".join(commands.JOBS)}.'
    hint = gin_text.did_you_mean(name, commands.JOBS) or choices
    raise commands.UsageError(
        f'there is no command {name!r}.{hint}\n{commands.USAGE}'
    )
  macros = {f'--{each}': each.upper() for each in job.flags}
  macros['--output_dir'] = job.output_macro
  known = ['--gin_file', '--gin_search_paths', *macros]
  files, paths, bindings, parts = [], [], [], []
  for flag in flags:
    key, _, value = flag.partition('=')
    is_binding = key.startswith(_GIN)
    if job.folder is not None and not flag.startswith('-'):
      parts.append(flag)
    elif not is_binding and key not in known:
      raise commands.UsageError(_unknown(flag, job, known))
    elif not value.strip():
      raise commands.UsageError(
          f'{flag!r} has no value. Write {key}=VALUE, with "=" in between; a'
          f' shell variable in it may be unset.\n{commands.USAGE}'
      )
    elif is_binding:
      bindings.append((key.removeprefix(_GIN), gin_value(key, value)))
    elif key == '--gin_file':
      files.append(os.fspath(user_paths.expand(value)))
    elif key == '--gin_search_paths':
      paths.extend(os.fspath(user_paths.expand(x)) for x in value.split(','))
    else:
      bindings.append((macros[key], repr(value)))
  rest = (*paths, '.', *commands.ROOTS), tuple(bindings)
  if job.folder is not None:
    return _parts(job, _sorted_parts(job, parts), files, *rest)
  if job.is_complete:
    files = [job.gin_file, *(f for f in files if f != job.gin_file)]
  if not files:
    raise commands.UsageError(
        f'--gin_file is required, see `speculative-t5x {name} --help`.'
        f'\n{commands.USAGE}'
    )
  return [commands.CommandLine(job, job.function, tuple(files), *rest)]


def _parts(
    job: commands.Job,
    names: Sequence[str],
    files: Sequence[str],
    folders: tuple[str, ...],
    bindings: tuple[tuple[str, str], ...],
) -> list[commands.CommandLine]:
  """Return what the named parts of a job need first, and then the parts."""
  line = functools.partial(commands.CommandLine, job, folders=folders)
  found = [
      line(
          function=f'{job.function}.{name}',
          gin_files=(part_file(job, name), *files),
          bindings=bindings,
      )
      for name in names
  ]
  needed = tuple(name for name in names if name in job.needs_first)
  if needed:
    function, file = job.first
    added = *bindings, ('TABLES', repr(needed))
    first = line(function=function, gin_files=(file, *files), bindings=added)
    found.insert(0, first)
  return found


def gin_value(flag: str, text: str) -> str:
  """Return a flag's value in gin's syntax; quote a bare path or word.

  Raises:
    commands.UsageError: for several values without parentheses.
  """
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
  """Return the gin file of a part of a job, as of a table of the paper.

  Raises:
    commands.UsageError: if there is no such part.
  """
  known = _sorted_parts(job, ())
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
  macros = {*macro_names.of_job(job).mentioned, *macro_names.providers()}
  hint = gin_text.did_you_mean(name, known)
  if not flag.startswith('-'):
    return f'the argument {flag!r} is unknown.{hint}\n{commands.USAGE}'
  hint = hint or gin_text.did_you_mean(
      meant, macros, f'{_GIN}{{}}={value or "VALUE"}'
  )
  return f'the flag {flag!r} is unknown.{hint}\n{commands.USAGE}'
