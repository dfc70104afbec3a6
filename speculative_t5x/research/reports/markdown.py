# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pages of text and tables: Markdown in files, and aligned on a terminal.

`str` of a page or a table is its Markdown; `console` prints it aligned.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import hashlib
import json
from typing import Any

from rich import console as console_lib
from rich import table as table_lib

from speculative_t5x.research import run_record

Row = Mapping[str, str]
_DIGITS = 16  # of a digest
MISSING = '-'  # of a value in a cell


@dataclasses.dataclass(frozen=True)
class Table:
  """Rows, each from the names of columns to texts without '|' and line breaks.

  Without a row it is False, and left out of pages.
  """

  rows: Sequence[Row]  # a column that a row lacks is missing there
  columns: Sequence[str] = ()  # their names in order; by default all that occur
  # Whether a screen, which would wrap the rows, leaves it out.
  is_detail: bool = False

  def __bool__(self) -> bool:
    return bool(self.rows)

  def lines(self) -> list[list[str]]:
    """Return the names of the columns, and the cells of each row."""
    names = dict.fromkeys(name for row in self.rows for name in row)
    names = [*(self.columns or names)]
    cells_of = lambda row: [row.get(name, MISSING) for name in names]
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
  """Texts and tables, of which a notebook renders the Markdown."""

  parts: Sequence[str | Table]  # those that are not empty are shown
  # What they were made from; the file has their digest.
  records: Sequence[Any] = ()

  def __str__(self) -> str:
    comments = [f'<!-- {digest_note(self.records)} -->'] if self.records else []
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


def number(value: float | None, decimals: int = 2) -> str:
  """Return a number with a fixed count of decimals."""
  return MISSING if value is None else f'{value:.{decimals}f}'


def interval(bounds: Sequence[float] | None, decimals: int = 2) -> str:
  """Return the bounds of an interval, in brackets."""
  if bounds is None:
    return MISSING
  low, high = (number(bound, decimals) for bound in bounds)
  return f'[{low}, {high}]'


def speedup(record: run_record.RunRecord | run_record.Reference | None) -> str:
  """Return the speedup of a run, with its interval if there is one."""
  if record is None:
    return MISSING
  return estimate(record.speedup, record.speedup_ci95)


def estimate(
    value: float | None,
    bounds: Sequence[float] | None,
    decimals: int = 2,
) -> str:
  """Return a value, with its interval if there is one."""
  if value is None or bounds is None:
    return number(value, decimals)
  return f'{number(value, decimals)} {interval(bounds, decimals)}'


def count(value: int | None) -> str:
  """Return a whole number as it is."""
  return MISSING if value is None else str(value)


def with_headline(rows: Sequence[Row], headline: Sequence[str]) -> list[Table]:
  """Return a table of some columns, and the table of all for the file.

  Columns in which no row has a value are left out.
  """
  rows = filled(rows)
  headline = [name for name in headline if any(name in row for row in rows)]
  return [Table(rows, headline), Table(rows, is_detail=True)]


def filled(rows: Sequence[Row]) -> list[Row]:
  """Return rows without the columns in which none has a value."""
  names = {name for row in rows for name in row if row[name] != MISSING}
  return [{k: x for k, x in row.items() if k in names} for row in rows]


def digest_note(records: Iterable[Any]) -> str:
  """Return the words that say which records something was made from.

  They have the digest of the records, dataclasses or JSON, whatever their
  order: a job that was resumed may add its records in another one. A key that a
  later version adds does not change it where it has no value. The words stand
  in a comment of a page and in the metadata of a picture; one whose digest is
  not that of its records is out of date.
  """
  lines = sorted(json.dumps(_known(x), sort_keys=True) for x in records)
  digest = hashlib.sha256('\n'.join(lines).encode()).hexdigest()
  return f'records: {digest[:_DIGITS]}'


def _known(value: Any) -> Any:
  if dataclasses.is_dataclass(value):
    value = dataclasses.asdict(value)
  if isinstance(value, dict):
    return {k: _known(v) for k, v in value.items() if v is not None}
  if isinstance(value, list | tuple):
    return [_known(x) for x in value]
  return value
