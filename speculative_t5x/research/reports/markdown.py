# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

from speculative_t5x.research.reports import digest


class Page(str):
  """Markdown text, which a notebook renders."""

  def _repr_markdown_(self) -> str:
    return str(self)


def page(parts: Iterable[str], records: Sequence[Any] = ()) -> Page:
  """Returns parts as a page, with the digest of its records in a comment.

  Args:
    parts: paragraphs and tables; empty ones are left out.
    records: what the page was made from; see `digest.of`.
  """
  comments = [f'<!-- {digest.note(records)} -->'] if records else []
  return Page('\n\n'.join(part for part in [*parts, *comments] if part))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """Returns a table of texts, which hold no line break and no '|'."""
  lines = [header, ['---'] * len(header), *rows]
  return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)


def with_headline(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    headline: Sequence[str],
) -> str:
  """Returns a table of some columns, and below it the table of all.

  A wide table hides its last columns off the screen.

  Args:
    header: names of the columns, all different.
    rows: their texts.
    headline: the names of those that come first.
  """
  rows = list(rows)
  places = [header.index(name) for name in headline]
  short = [[row[place] for place in places] for row in rows]
  return '\n\n'.join([table(headline, short), 'Details:', table(header, rows)])
