# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints reports: on a terminal, as text, in notebooks, and as pictures."""

import io
from typing import Any

from rich import console as console_lib
from rich import terminal_theme

_UNBOUNDED = 10_000  # columns; no line of a report is as long
_PICTURE_COLUMNS = 100
# Text without a style has the colour that the notebook gives it.
_HTML = '<pre style="white-space: pre-wrap; line-height: 1.5">{code}</pre>'
# Without the frame of a window, and fonts that would be fetched.
_SVG = """\
<svg viewBox="0 0 {terminal_width} {terminal_height}"
xmlns="http://www.w3.org/2000/svg">
<style>.{unique_id}-matrix {{ font: {char_height}px monospace;
white-space: pre }}
{styles}</style>
<defs>{lines}</defs>
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""


def show(report: console_lib.RenderableType) -> None:
  """Print a report to stdout: with styles on a terminal, else as `to_text`.

  Lines are never broken, so that paths can be copied. A terminal wraps them.
  """
  terminal = _console()
  if terminal.color_system is None:
    print(to_text(report))
  else:
    terminal.print(report)


def to_text(report: console_lib.RenderableType) -> str:
  """Return a report as plain text, without styles and trailing spaces."""
  page = _page(color_system=None)
  page.print(report)
  lines = page.file.getvalue().removesuffix('\n').split('\n')
  return '\n'.join(line.rstrip() for line in lines)


def to_html(report: console_lib.RenderableType) -> str:
  """Return a report as an HTML fragment with inline styles, for notebooks."""
  page = _page(color_system='truecolor', record=True)
  page.print(report)
  return page.export_html(code_format=_HTML, inline_styles=True)


def to_svg(report: console_lib.RenderableType) -> str:
  """Return a report as a picture, which loads nothing, of 100 columns."""
  page = _page(color_system='truecolor', record=True, width=_PICTURE_COLUMNS)
  page.print(report)
  theme = terminal_theme.DEFAULT_TERMINAL_THEME  # dark text on white
  return page.export_svg(title='', theme=theme, code_format=_SVG)


def _page(**options: Any) -> console_lib.Console:
  """Return a console that writes to a string, also within a notebook."""
  return _console(file=io.StringIO(), force_jupyter=False, **options)


def _console(width: int = _UNBOUNDED, **options: Any) -> console_lib.Console:
  # Brackets in reports are not markup.
  return console_lib.Console(
      width=width, highlight=False, markup=False, emoji=False, **options
  )
