# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The help of the command `speculative-t5x`: gin files' heads and settings."""

from collections.abc import Iterator, Sequence
import itertools
import re
import textwrap

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import flags
from speculative_t5x.loading.files import user_paths

_OVERVIEW = """usage: {usage}

commands:
{commands}

flags:
  --gin_file=FILE              a gin file; may be repeated, and later files
                               override earlier ones
  --gin.NAME=VALUE             a single setting; overrides all files
  --output_dir=DIR             the folder for the results
  --gin_search_paths=DIR,...   folders to search for gin files, after the
                               current folder

For the required and the common settings of a command, see
speculative-t5x COMMAND --help"""
_SETTING = re.compile(r'([A-Z][A-Z0-9_]*) *= *(.+)')
_INCLUDE = re.compile(r"""include ['"](.+)['"]""")
_USED = re.compile(r'%([A-Z][A-Z0-9_]*)')


def text(argv: Sequence[str]) -> str:
  """Return the help of a command or of its first named part.

  It is the head comment of the gin file, and the defaults in it, for a part of
  the paper also those of what runs before it. Gin files among the arguments are
  read as the command would read them. Without a command, it is an overview.
  """
  argv = [x for x in argv if x not in ('-h', '--help')]
  if not argv:
    lines = [f'  {k:15}{job.summary}' for k, job in commands.JOBS.items()]
    return _OVERVIEW.format(usage=commands.USAGE, commands='\n'.join(lines))
  todo = flags.parse(argv)
  headed = todo[-1].job
  if argv[0] == 'paper' and len(todo) > 2:  # no part is named
    todo, headed = todo[:1], commands.JOBS['paper']
  lines = _read(headed.gin_file, commands.ROOTS)
  head = itertools.takewhile(lambda line: line.startswith('#'), lines)
  # The first three lines are the licence.
  shown = [line[2:] for line in itertools.islice(head, 3, None)]
  for command in todo:
    shown += ['', *_settings(command)]
  return '\n'.join(shown)


def _settings(command: commands.CommandLine) -> Iterator[str]:
  """Yield lines of the settings of gin files, their defaults and choices."""
  yield f'All settings and their defaults in {", ".join(command.gin_files)}:'
  settings = dict.fromkeys(command.job.optional, 'None')
  for name in command.gin_files:
    settings |= _macros(name, command.folders, settings)
  for name, value in sorted(settings.items()):
    shown = '<required>' if value == commands.REQUIRED else value
    yield f'  {name} = {shown}'
    if folder := commands.CHOICES.get(name):
      names = ', '.join(path.stem for path in commands.files(folder))
      yield from textwrap.wrap(
          f'--gin_file={folder}/<name>.gin sets it; names: {names}',
          80,
          initial_indent=' ' * 6,
          subsequent_indent=' ' * 6,
          break_on_hyphens=False,
      )


def _macros(
    name: str, folders: Sequence[str], settings: dict[str, str]
) -> dict[str, str]:
  """Return the macros of a file and of all that it includes, after others.

  Gin itself would import what they name. Of a value of several lines the first
  one is returned.
  """
  settings = dict(settings)
  for line in _read(name, folders):
    if include := _INCLUDE.match(line):
      settings |= _macros(include[1], folders, settings)
    elif setting := _SETTING.match(line):
      settings[setting[1]] = setting[2]
    else:
      for macro in _USED.findall(line.partition('#')[0]):
        settings.setdefault(macro, commands.REQUIRED)
  return settings


def _read(name: str, folders: Sequence[str]) -> list[str]:
  """Return the lines of a gin file, from the first folder that has it."""
  for folder in ('', *folders):
    path = user_paths.expand(folder or '.') / user_paths.expand(name)
    if path.is_file():
      return path.read_text(encoding='utf-8').splitlines()
  raise commands.UsageError(f'there is no gin file {name!r}.')
