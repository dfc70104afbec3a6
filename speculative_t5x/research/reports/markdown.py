# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown. A row maps the names of its columns to their texts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import digest

Row = Mapping[str, str]


class Page(str):
  """Markdown text, which a notebook renders."""

  def _repr_markdown_(self) -> str:
    return str(self)


def page(parts: Iterable[str], records: Sequence[Any] = ()) -> Page:
  """Return parts as a page, with the digest of its records in a comment.

  Empty parts are left out. For the digest see `digest.of`.
  """
  comments = [f'<!-- {digest.note(records)} -->'] if records else []
  return Page('\n\n'.join(part for part in [*parts, *comments] if part))


def table(rows: Iterable[Row], columns: Sequence[str] = ()) -> str:
  """Return a table of texts, which hold no line break and no '|'.

  The columns are those given, or all that a row has; a row may lack some.
  Without a row there is no table, and an empty text.
  """
  rows = list(rows)
  if not rows:
    return ''
  names = columns or [*dict.fromkeys(name for row in rows for name in row)]
  lines = [names, ['---'] * len(names)]
  lines += [[row.get(name, cells.MISSING) for name in names] for row in rows]
  return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


def with_headline(rows: Sequence[Row], headline: Sequence[str]) -> str:
  """Return a table of some columns, and below it the table of all.

  A wide table hides its last columns off the screen.
  """
  if not rows:
    return ''
  return '\n\n'.join([table(rows, headline), 'Details:', table(rows)])
