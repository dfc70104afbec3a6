# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages of text and tables: Markdown in files, and aligned on a terminal.

`str` of a page or a table is its Markdown; `console` prints it aligned.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from rich import console as console_lib
from rich import table as table_lib

from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import digest

Row = Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Table:
  """Rows, each from the names of columns to texts without '|' and line breaks.

  Without a row it is False, and left out of pages.

  Attributes:
    rows: A column that a row lacks is missing there.
    columns: Their names in order; by default all that occur.
    is_detail: Whether a screen, which would wrap the rows, leaves it out.
  """

  rows: Sequence[Row]
  columns: Sequence[str] = ()
  is_detail: bool = False

  def __bool__(self) -> bool:
    return bool(self.rows)

  def lines(self) -> list[list[str]]:
    """Return the names of the columns, and the cells of each row."""
    names = dict.fromkeys(name for row in self.rows for name in row)
    names = [*(self.columns or names)]
    cells_of = lambda row: [row.get(name, cells.MISSING) for name in names]
    return [names, *map(cells_of, self.rows)]

  def __str__(self) -> str:
    names, *rows = self.lines()
    lines = names, ['---'] * len(names), *rows
    text = '\n'.join(f'| {" | ".join(line)} |' for line in lines)
    return f'Details:\n\n{text}' if self.is_detail else text

  def __rich__(self) -> table_lib.Table:
    table = table_lib.Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    names, *rows = self.lines()
    for name in names:
      table.add_column(name, justify='right')
    for row in rows:
      table.add_row(*row)
    return table


@dataclasses.dataclass(frozen=True)
class Page:
  """Texts and tables, of which a notebook renders the Markdown.

  Attributes:
    parts: Those that are not empty are shown.
    records: What they were made from; the file has their digest.
  """

  parts: Sequence[str | Table]
  records: Sequence[Any] = ()

  def __str__(self) -> str:
    comments = [f'<!-- {digest.note(self.records)} -->'] if self.records else []
    return '\n\n'.join(map(str, [*filter(None, self.parts), *comments]))

  def _repr_markdown_(self) -> str:
    return '\n\n'.join(map(str, self._shown()))

  def __rich__(self) -> console_lib.Group:
    spaced = [line for part in self._shown() for line in ('', part)]
    return console_lib.Group(*spaced[1:])

  def _shown(self) -> list[str | Table]:
    """Return the parts that fit a screen."""
    parts = filter(None, self.parts)
    return [x for x in parts if not getattr(x, 'is_detail', False)]


def with_headline(rows: Sequence[Row], headline: Sequence[str]) -> list[Table]:
  """Return a table of some columns, and the table of all for the file.

  Columns in which no row has a value are left out.
  """
  rows = filled(rows)
  headline = [name for name in headline if any(name in row for row in rows)]
  return [Table(rows, headline), Table(rows, is_detail=True)]


def filled(rows: Sequence[Row]) -> list[Row]:
  """Return rows without the columns in which none has a value."""
  names = {name for row in rows for name in row if row[name] != cells.MISSING}
  return [{k: x for k, x in row.items() if k in names} for row in rows]
