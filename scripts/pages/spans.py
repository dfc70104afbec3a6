# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Generated spans of a page: `<!--= expression -->text<!--/-->`."""

from collections.abc import Mapping
import re
from typing import Any

_SPAN = re.compile(r'<!--= (.+?) -->(.*?)<!--/-->', re.DOTALL)
_MARKER = re.compile(r'<!--[=/].*')
# Of a line: indentation, quotation and what begins an item of a list.
_NO_TEXT = re.compile(r'[\s>*+-]*(\d+[.)]\s*)?')


def render(page: str, names: Mapping[str, Any]) -> str:
  """Returns a page with each span's text replaced by its expression's value.

  Args:
    page: Markdown.
    names: what expressions may use.
  Raises:
    ValueError: for a marker without its other one, an expression that fails,
      and a span in which Markdown would not stay what it is.
  """
  check(page)
  return _SPAN.sub(lambda match: _span(match, names), page)


def check(page: str) -> None:
  """Raises ValueError for a marker without its other one."""
  stray = [*_MARKER.finditer(without(page))]
  # The text of a span with a marker in it has lost its own end.
  stray += filter(None, (_MARKER.search(m[2]) for m in _SPAN.finditer(page)))
  if stray:
    raise ValueError(
        f'{stray[0][0]!r} stands alone. A generated span is "<!--= expression'
        ' -->text<!--/-->", and holds no other.'
    )


def without(page: str) -> str:
  """Returns a page without its generated spans."""
  return _SPAN.sub('', page)


def count(page: str) -> int:
  """Returns how many generated spans a page has."""
  return len(_SPAN.findall(page))


def _span(match: re.Match[str], names: Mapping[str, Any]) -> str:
  expression = match[1]
  try:
    text = str(eval(expression, dict(names)))
  except Exception as error:
    raise ValueError(
        f'{expression!r} fails: {type(error).__name__}: {error}. Its names are'
        ' those of scripts/pages/names.py.'
    ) from error
  before = match.string[: match.start()].rpartition('\n')[2]
  if '\n' in text:
    text = f'\n{text}\n'
  elif _NO_TEXT.fullmatch(before):
    raise ValueError(
        f'{expression!r} begins a line, where a comment ends the paragraph. Put'
        ' a word of the line before it there.'
    )
  return f'<!--= {expression} -->{text}<!--/-->'
