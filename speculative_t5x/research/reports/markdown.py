# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages of text and tables, as Markdown in files and aligned on a terminal.

A row of a table maps the names of its columns to their texts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import console as console_lib

from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import digest

Row = Mapping[str, str]


class Table(str):
  """A table as Markdown text, which `console` prints aligned.

  Attributes:
    rows: Its rows; each has all columns.
    is_detail: Whether a screen, which would wrap the rows, leaves it out.
  """

  rows: Sequence[Row] = ()
  is_detail = False

  def __rich__(self) -> console_lib.RenderableType:
    return console.table(self.rows)


class Page(str):
  """Markdown text, which a notebook renders, and `console` prints aligned.

  Attributes:
    parts: Its texts and tables, without the comment in the file.
  """

  parts: Sequence[str] = ()

  def _repr_markdown_(self) -> str:
    return '\n\n'.join(self._shown())

  def __rich__(self) -> console_lib.Group:
    spaced = [line for part in self._shown() for line in ('', part)]
    return console_lib.Group(*spaced[1:])

  def _shown(self) -> list[str]:
    """Return the parts that fit a screen."""
    return [x for x in self.parts if not getattr(x, 'is_detail', False)]


def page(parts: Iterable[str], records: Sequence[Any] = ()) -> Page:
  """Return the parts that are not empty, and the digest of their records."""
  parts = [part for part in parts if part]
  comments = [f'<!-- {digest.note(records)} -->'] if records else []
  found = Page('\n\n'.join([*parts, *comments]))
  found.parts = parts
  return found


def table(rows: Iterable[Row], columns: Sequence[str] = ()) -> Table:
  """Return a table of texts, which hold no line break and no '|'.

  Without a row there is no table, and an empty text.
  """
  rows = list(rows)
  if not rows:
    return Table()
  names = columns or [*dict.fromkeys(name for row in rows for name in row)]
  rows = [{x: row.get(x, cells.MISSING) for x in names} for row in rows]
  lines = [names, ['---'] * len(names), *(row.values() for row in rows)]
  found = Table('\n'.join(f'| {" | ".join(line)} |' for line in lines))
  found.rows = rows
  return found


def with_headline(rows: Sequence[Row], headline: Sequence[str]) -> list[Table]:
  """Return a table of some columns, and the table of all for the file.

  Columns in which no row has a value are left out.
  """
  if not rows:
    return []
  rows = filled(rows)
  headline = [name for name in headline if name in rows[0]]
  details = table(rows)
  every = Table(f'Details:\n\n{details}')
  every.rows, every.is_detail = details.rows, True
  return [table(rows, headline), every]


def filled(rows: Sequence[Row]) -> list[Row]:
  """Return rows without the columns in which none has a value."""
  names = {name for row in rows for name in row if row[name] != cells.MISSING}
  return [{k: x for k, x in row.items() if k in names} for row in rows]
