# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Generated spans of a page: `<!--= expression -->text<!--/-->`."""

from collections.abc import Mapping
import re
from typing import Any

_SPAN = re.compile(r'<!--= (.+?) -->(.*?)<!--/-->', re.DOTALL)
_MARKER = re.compile(r'<!--[=/].*')
# The start of a line: indentation, quotation or the marker of a list item.
_NO_TEXT = re.compile(r'[\s>*+-]*(\d+[.)]\s*)?')


def render(page: str, names: Mapping[str, Any]) -> str:
  """Returns a page with each span's text replaced by its expression's value.

  Args:
    page: Markdown.
    names: the names that expressions can use.
  Raises:
    ValueError: for an unmatched marker, an expression that fails, or a span
      that would break the Markdown.
  """
  check(page)
  return _SPAN.sub(lambda match: _span(match, names), page)


def check(page: str) -> None:
  """Raises ValueError for an unmatched marker."""
  stray = [*_MARKER.finditer(without(page))]
  # A marker within a span means that the span's end marker is missing.
  stray += filter(None, (_MARKER.search(m[2]) for m in _SPAN.finditer(page)))
  if stray:
    raise ValueError(
        f'The marker {stray[0][0]!r} is unmatched. Write a generated span as'
        ' "<!--= expression -->text<!--/-->", without another span inside.'
    )


def without(page: str) -> str:
  """Returns a page without its generated spans."""
  return _SPAN.sub('', page)


def count(page: str) -> int:
  """Returns the number of generated spans in a page."""
  return len(_SPAN.findall(page))


def _span(match: re.Match[str], names: Mapping[str, Any]) -> str:
  expression = match[1]
  try:
    text = str(eval(expression, dict(names)))
  except Exception as error:
    raise ValueError(
        f'{expression!r} fails: {type(error).__name__}: {error}. Use only names'
        ' of scripts/pages/names.py.'
    ) from error
  before = match.string[: match.start()].rpartition('\n')[2]
  if '\n' in text:
    text = f'\n{text}\n'
  elif _NO_TEXT.fullmatch(before):
    raise ValueError(
        f'{expression!r} begins a line, where a comment would end the'
        ' paragraph. Move a word of the previous line to its front.'
    )
  return f'<!--= {expression} -->{text}<!--/-->'
