# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which macros the package's own gin files know, and checks of those given.

Gin ignores a macro that nothing uses, so a misspelt name would go unnoticed.
"""

from collections.abc import Mapping, Sequence
import functools
import pathlib

from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import gin_text


def gin_files(folder: str) -> list[str]:
  """Return the gin files of a folder in `configs`, sorted by name."""
  return sorted(
      f'{folder}/{path.name}'
      for root in commands.ROOTS
      for path in (pathlib.Path(root) / folder).glob('*.gin')
  )


@functools.cache
def of_job(job: commands.Job) -> gin_text.Macros:
  """Return the macros of the gin file that configures a command."""
  return gin_text.read_macros([job.gin_file], commands.ROOTS)


@functools.cache
def providers() -> dict[str, str]:
  """Return a gin file of a choice for each macro that those files mention."""
  files = [x for each in commands.CHOICES.values() for x in gin_files(each)]
  return {
      name: file
      for file in reversed(files)
      for name in gin_text.read_macros([file], commands.ROOTS).mentioned
  }


def provider_hint(name: str) -> str:
  """Return a hint at the gin file of a macro, empty for most macros."""
  file = providers().get(name)
  return f' Add the file of a choice, as --gin_file={file}.' if file else ''


def check(todo: Sequence[commands.CommandLine]) -> None:
  """Reject macros that nothing uses, or that a later file sets again.

  The command lines run one after another, with equal bindings.

  Raises:
    commands.UsageError: naming the macro and where it is set.
  """
  macros = gin_text.Macros()
  for command in todo:
    found = gin_text.read_macros(command.gin_files, command.folders)
    macros.places |= found.places
    macros.used |= found.used
    _check_names(found.names)
    _check_order(command)
  for name, value in todo[0].bindings:
    macros.used |= gin_text.macros_in(value, f'--gin.{name}={value}')
  if not macros.used:
    return  # no job is configured, which `gin_job` tells
  for name, place in macros.places.items():
    if name not in macros.used:
      raise commands.UsageError(
          f'{place} sets the macro {name}, which is not used.'
          + (
              _users_hint(name)
              or gin_text.did_you_mean(name.upper(), macros.used)
              or ' Remove it, or add the gin file that uses it.'
          )
      )
  for name, _ in todo[0].bindings:
    if '.' not in name and name not in macros.mentioned:
      raise commands.UsageError(
          f'no gin file mentions the macro {name}.'
          + (
              provider_hint(name)
              or gin_text.did_you_mean(name.upper(), macros.mentioned)
          )
      )


def _users_hint(name: str) -> str:
  """Return a hint at the commands that use a macro, empty without any."""
  jobs = commands.JOBS.items()
  users = [command for command, job in jobs if name in of_job(job).used]
  return f' It is a setting of: {", ".join(users)}.' if users else ''


def _check_names(names: Mapping[str, str]) -> None:
  """Reject modules and classes by the names that they had before."""
  for old, new in commands.RENAMED.items():
    # A module is named where it is imported, a class behind its module.
    module, _, last = old.rpartition('.')
    own = f'{module.rpartition(".")[2]}.{last}' if last[0].isupper() else old
    if own in names and (own == old or module in names):
      raise commands.UsageError(
          f'{names[own]}: {old} is now {new}. Correct the name.'
      )


def _check_order(command: commands.CommandLine) -> None:
  """Reject the file of a choice before a file that sets its macro again.

  A job's file sets rule and policy to their defaults, and the last setting
  wins.
  """
  chosen = {}
  for file in command.gin_files:
    places = gin_text.read_macros([file], command.folders).places
    found = commands.CHOICES.keys() & places.keys()
    if len({commands.CHOICES[name] for name in found}) == 1:
      chosen |= dict.fromkeys(found, file)
      continue
    for name in sorted(found & chosen.keys()):
      raise commands.UsageError(
          f'{chosen[name]} sets {name}, but {file}, given after it, sets it'
          f' again. Give {chosen[name]} last.'
      )
