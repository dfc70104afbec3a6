# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The help of the command `speculative-t5x`: what gin files say and set."""

from collections.abc import Iterator, Sequence
import itertools
import pathlib
import textwrap

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import flags
from speculative_t5x.jobs.command_line import gin_text
from speculative_t5x.jobs.command_line import macro_names

_OVERVIEW = """{usage}

commands:
{commands}

flags:
  --gin_file=FILE              a gin file; may be repeated, and later files
                               override earlier ones
  --gin.NAME=VALUE             a single setting; overrides all files
  --output_dir=DIR             the folder for the results
  --gin_search_paths=DIR,...   folders to search for gin files, before the
                               current folder and the package's configs

examples:
  speculative-t5x eval --gin_file=configs/runs/demo.gin
  speculative-t5x paper table1 figure2 --output_dir=/path/to/folder
  speculative-t5x check-pair --gin.CHECKPOINT_PATH=/path/to/target \\
      --gin.DRAFT_CHECKPOINT_PATH=/path/to/draft

For the required and the common settings of a command, see
speculative-t5x COMMAND --help"""


def text(argv: Sequence[str]) -> str:
  """Return the help of a command or of its first named part.

  The help is the head comment of the gin file, and the defaults in it, for a
  part of the paper also those of what runs before it. Gin files among the
  arguments are read as the command would read them. Without a command, it
  is the overview of all commands.
  """
  job = commands.JOBS.get(argv[0]) if argv else None
  if job is None:
    lines = [f'  {k:15}{job.summary}' for k, job in commands.JOBS.items()]
    return _OVERVIEW.format(usage=commands.USAGE, commands='\n'.join(lines))
  given = flags.read(job, [x for x in argv[1:] if x not in ('-h', '--help')])
  set_by = [job.gin_file]
  if job is commands.JOBS['paper']:
    set_by = [commands.PAIRS.gin_file]
  if given.parts:
    *first, job = flags.paper_jobs(given.parts[:1])
    set_by = [each.gin_file for each in (job, *first)]
  path = gin_text.find(job.gin_file, commands.ROOTS)
  rows = path.read_text(encoding='utf-8').splitlines()
  head = itertools.takewhile(lambda row: row.startswith('#'), rows)
  # The first three lines are the licence.
  lines = [row[2:] for row in itertools.islice(head, 3, None)]
  more = [file for file in given.gin_files if file not in set_by]
  for file in set_by:
    lines += ['', *_settings(job, [file, *more], given.folders)]
  return '\n'.join(lines)


def _settings(
    job: commands.Job, files: Sequence[str], folders: Sequence[str]
) -> Iterator[str]:
  """Yield lines of the settings of gin files, their defaults and choices."""
  yield f'All settings and their defaults in {", ".join(files)}:'
  macros = gin_text.read_macros(files, folders)
  for name in sorted(macros.mentioned):
    unset = 'None' if name in job.optional else commands.REQUIRED
    value = macros.values.get(name, unset)
    is_required = value == commands.REQUIRED
    yield f'  {name} = {"<required>" if is_required else value}'
    folder = commands.CHOICES.get(name)
    if folder and name.lower() not in job.flags:
      names = [pathlib.Path(x).stem for x in macro_names.gin_files(folder)]
      yield from textwrap.wrap(
          f'--gin_file={folder}/<name>.gin sets it; names: {", ".join(names)}',
          80,
          initial_indent=' ' * 6,
          subsequent_indent=' ' * 6,
          break_on_hyphens=False,
      )
