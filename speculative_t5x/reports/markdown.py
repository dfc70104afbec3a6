# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


class Page(str):
  """Markdown text, which a notebook renders."""

  def _repr_markdown_(self) -> str:
    return str(self)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """Returns a table of texts, which hold no line break and no '|'."""
  lines = [header, ['---'] * len(header), *rows]
  return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)
