# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Renders all pages and reports of a checkout."""

from collections.abc import Iterator
import pathlib

from scripts.pages import names as names_lib
from scripts.pages import reports
from scripts.pages import spans

_PATTERNS = (
    'README.md', 'CHANGELOG.md', 'docs/*.md',
    'speculative_t5x/embedded/MODEL_CARD.md', 'results/multi30k/README.md',
)  # fmt: skip


def pages(root: pathlib.Path) -> list[pathlib.Path]:
  """Returns the pages that may have generated spans."""
  return [path for each in _PATTERNS for path in sorted(root.glob(each))]


def rendered(root: pathlib.Path) -> Iterator[tuple[pathlib.Path, str]]:
  """Yields the path and the rendered text of each page and report.

  Raises:
    ValueError: if a span cannot be written; names the page.
  """
  names = names_lib.make(root / 'results')
  for path in pages(root):
    try:
      yield path, spans.render(path.read_text(), names)
    except ValueError as error:
      raise ValueError(f'{path.relative_to(root)}: {error}') from error
  yield from reports.render(root / 'results')
