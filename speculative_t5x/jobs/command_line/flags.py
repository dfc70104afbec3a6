# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the flags of a command, which are those of T5X's scripts."""

import argparse
import ast
from collections.abc import Collection, Sequence
import os
import re

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.loading.files import user_paths

_BINDING = re.compile(r'--gin\.([^=]+)=(.*\S.*)', re.DOTALL)
_BARE_STRING = re.compile(r'-|[./~].*|\w[^\'"()\[\]{}%@]*(/.*)?', re.DOTALL)


def parse(argv: Sequence[str]) -> list[commands.CommandLine]:
  """Return the command lines to run, one after another.

  `argv` is a command, its flags, and for `paper` names of parts.

  Raises:
    SystemExit: with status 2 for other flags; prints a line and the usage.
  """
  name, *arguments = argv
  if name not in commands.JOBS:
    choices = ', '.join(commands.JOBS)
    raise commands.UsageError(
        f'there is no command {name!r}. Choose from: {choices}.'
    )
  job = commands.JOBS[name]
  parser = argparse.ArgumentParser(
      f'speculative-t5x {name}',
      usage=commands.USAGE,
      allow_abbrev=False,
      add_help=False,
  )
  parser.add_argument('--gin_file', action='append', default=[])
  parser.add_argument('--gin_search_paths', default='')
  macros = {flag: flag.upper() for flag in job.flags}
  if job.output_macro:
    macros['output_dir'] = job.output_macro
  for flag in macros:
    parser.add_argument(f'--{flag}')
  given, others = parser.parse_known_args(arguments)
  bindings, parts = [], []
  for other in others:
    if binding := _BINDING.fullmatch(other):
      bindings.append((binding[1], gin_value(*binding.groups())))
    elif name == 'paper' and not other.startswith('-'):
      parts.append(other)
    else:
      parser.error(f'the argument {other!r} is unknown, or has no value.')
  for flag, macro in macros.items():
    value = getattr(given, flag)
    if value is not None and not value.strip():
      parser.error(f'--{flag} has no value; a shell variable may be unset.')
    if value is not None:
      bindings.append((macro, repr(value)))
  jobs = {job: ()}
  if name == 'paper':
    jobs = paper_jobs(parts or commands.PARTS)
  folders = filter(None, given.gin_search_paths.split(','))
  return [
      commands.CommandLine(
          each,
          tuple(dict.fromkeys((each.gin_file, *map(_path, given.gin_file)))),
          (*map(_path, folders), *commands.ROOTS),
          (*bindings, *more),
      )
      for each, more in jobs.items()
  ]


def _path(text: str) -> str:
  return os.fspath(user_paths.expand(text))


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


def gin_value(name: str, text: str) -> str:
  """Return a flag's value in gin's syntax; quote a bare path or word."""
  try:
    value = ast.literal_eval(text)
  except (SyntaxError, ValueError):
    return repr(text) if _BARE_STRING.fullmatch(text) else text
  # Commas without parentheses are a tuple in Python, but an error in gin.
  if isinstance(value, tuple) and ast.literal_eval(f'[{text}]') != [value]:
    raise commands.UsageError(
        f"several values need parentheses: --gin.{name}='({text})'."
    )
  return text
