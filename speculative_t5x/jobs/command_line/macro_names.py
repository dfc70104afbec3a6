# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which macros the package's own gin files know, and checks of those given.

Gin ignores a macro that nothing uses, so a misspelt name would go unnoticed.
"""

from collections.abc import Sequence
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


def provider_hint(name: str) -> str:
  """Return a hint at the gin file of a macro, empty for most macros."""
  files = (x for each in commands.CHOICES.values() for x in gin_files(each))
  for file in files:
    if name in gin_text.read_macros([file], commands.ROOTS).mentioned:
      return f' Add the file of a choice, as --gin_file={file}.'
  return ''


def check(todo: Sequence[commands.CommandLine]) -> None:
  """Reject macros that nothing uses.

  The command lines run one after another, with equal bindings.
  """
  macros = gin_text.Macros()
  for command in todo:
    found = gin_text.read_macros(command.gin_files, command.folders)
    macros.places |= found.places
    macros.used |= found.used
  for name, value in todo[0].bindings:
    macros.used |= gin_text.macros_in(value, f'--gin.{name}={value}')
  for name, place in macros.places.items():
    if name not in macros.used:
      raise commands.UsageError(
          f'{place} sets the macro {name}, which is not used.'
          + (
              gin_text.did_you_mean(name.upper(), macros.used)
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
