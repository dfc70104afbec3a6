# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""How reports are printed: one console, and one look for all tables."""

from collections.abc import Iterable, Sequence
import io
from typing import Any

from rich import console as console_lib
from rich import table as table_lib

_UNBOUNDED = 10_000  # columns; no line of a report is as long


def show(report: console_lib.RenderableType) -> None:
  """Prints a report to stdout: with styles on a terminal, else as `to_text`.

  Lines are never broken, so that paths can be copied. A terminal wraps them.
  """
  terminal = _console()
  if terminal.color_system is None:
    print(to_text(report))
  else:
    terminal.print(report)


def to_text(report: console_lib.RenderableType) -> str:
  """Returns a report as plain text, without styles and without line breaks.

  Lines have no trailing spaces, and the last one has no newline.
  """
  page = _console(file=io.StringIO(), color_system=None)
  page.print(report)
  lines = page.file.getvalue().splitlines()
  return '\n'.join(line.rstrip() for line in lines)


def _console(**options: Any) -> console_lib.Console:
  # Reports hold brackets, which are no markup.
  return console_lib.Console(
      width=_UNBOUNDED, highlight=False, markup=False, emoji=False, **options
  )


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    justify: console_lib.JustifyMethod = 'right',
) -> table_lib.Table:
  """Returns a table without lines between its cells."""
  result = table_lib.Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
  for name in header:
    result.add_column(name, justify=justify)
  for row in rows:
    result.add_row(*row)
  return result
