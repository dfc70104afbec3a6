# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figure 1 of the paper, a decoded sentence, as a page and as a picture.

Of Leviathan et al. (2023), arXiv:2211.17192v2. `reports.token_trace` says what
is shown and how; here it is written to files.
"""

import io
import re

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import patches
from rich import cells
from rich import color as color_lib
from rich import console as console_lib
from rich import segment as segment_lib
from rich import style as style_lib

from speculative_t5x.research import figure_style
from speculative_t5x.research.reports import token_trace

_COLUMNS = 100  # characters per line
_FONT = 'DejaVu Sans Mono'  # comes with matplotlib
_ADVANCE = 0.602  # width of its characters over its size
# In points.
_WIDTH = figure_style.PAGE_IN * 72
_MARGIN = 6.0
_STEP = (_WIDTH - 2 * _MARGIN) / _COLUMNS
_SIZE = _STEP / _ADVANCE
_LEADING = 1.6 * _SIZE
# Heights over the baseline, over the size of the font.
_TOP, _STRIKE, _UNDERLINE, _BOTTOM = 0.95, 0.3, -0.15, -0.3


def page(trace: token_trace.TokenTrace) -> str:
  """Return an HTML page that loads nothing, to be written as UTF-8."""
  console = _console()
  console.print(trace)
  return console.export_html()


def draw(trace: token_trace.TokenTrace) -> figure_lib.Figure:
  """Draw a figure for print, as wide as a page and as tall as its text."""
  rows = _console().render_lines(trace, pad=False)
  height = len(rows) * _LEADING + 2 * _MARGIN
  with figure_style.applied():
    figure = figure_style.Figure((figure_style.PAGE_IN, height / 72))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, _WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    for number, row in enumerate(rows):
      _draw_row(axes, row, _MARGIN + number * _LEADING + _SIZE)
  return figure


def _console() -> console_lib.Console:
  return console_lib.Console(
      file=io.StringIO(),
      force_jupyter=False,  # it would show the page instead of writing it
      record=True,
      width=_COLUMNS,
      color_system='truecolor',
      legacy_windows=False,
  )


def _draw_row(
    axes: axes_lib.Axes, row: list[segment_lib.Segment], baseline: float
) -> None:
  x = _MARGIN
  for segment in row:
    look = segment.style or style_lib.Style.null()
    width = segment.cell_length * _STEP
    # Word by word: pixels round the widths of characters, which adds up.
    for word in re.finditer(r'\S+', segment.text):
      before = cells.cell_len(segment.text[: word.start()])
      axes.text(
          x + before * _STEP, baseline, word[0], family=_FONT, size=_SIZE,
          color=_hex(look.color) or 'black', parse_math=False,
          weight='bold' if look.bold else 'normal',
      )  # fmt: skip
    if ground := _hex(look.bgcolor):
      low, height = baseline - _BOTTOM * _SIZE, (_BOTTOM - _TOP) * _SIZE
      ground = patches.Rectangle(
          (x, low), width, height, color=ground, linewidth=0
      )
      axes.add_patch(ground)
    for is_on, rise in ((look.strike, _STRIKE), (look.underline, _UNDERLINE)):
      if is_on:
        ends, heights = (x, x + width), [baseline - rise * _SIZE] * 2
        axes.plot(ends, heights, color=_hex(look.color), linewidth=0.8)
    x += width


def _hex(color: color_lib.Color | None) -> str | None:
  return None if color is None else color.get_truecolor().hex
