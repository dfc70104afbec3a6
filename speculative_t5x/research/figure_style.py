# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The style of all figures: for a two-column paper, and readable in grey.

A line style, a marker or a word repeats what a colour says. The settings of the
process stay as they are: figures are made and saved under `applied`.
"""

import base64
from collections.abc import Sequence
import functools
import io
from typing import Any

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import style

from speculative_t5x.research.reports import markdown

COLUMN_IN = 3.3  # width of a column, inches
PAGE_IN = 6.75  # width of a page, inches
_REST_IN = 1.4  # height of the labels
LEGEND_LINE_IN = 0.12
_DOTS_PER_INCH = 300
_SCREEN_DOTS_PER_INCH = 200
SMALL = 6  # points

Dashes = str | tuple[int, Sequence[int]]
DASHES: tuple[Dashes, ...] = ('-', '--', '-.', ':', (0, (4, 1, 1, 1, 1, 1)))
MARKERS = 'os^Dv*PX<>'
CURVE_COLOR = '#555555'
MARK_POINTS = 4  # diameter of a marker

# Leaves out the date and the version, so that the same figure gives the same
# bytes. The key of the records' digest is one that the format knows.
_METADATA = {
    'pdf': {'CreationDate': None, 'Creator': None, 'Producer': None},
    'png': {'Software': None},
}
_DIGEST_KEY = {'pdf': 'Keywords', 'png': 'Description'}

# Starts from matplotlib's defaults, whatever the settings of the user are.
applied = functools.partial(
    style.context,
    (
        'default',
        {
            'font.size': 7,
            'axes.labelsize': 7.5,
            'axes.linewidth': 0.6,
            'axes.spines.right': False,
            'axes.spines.top': False,
            'axes.xmargin': 0,
            'grid.color': '#dddddd',
            'grid.linewidth': 0.4,
            'legend.fontsize': 6.5,
            'legend.frameon': False,
            'legend.handlelength': 2.4,
            'lines.linewidth': 1.1,
            'pdf.fonttype': 42,  # TrueType, as journals require
            'xtick.major.width': 0.6,
            'ytick.major.width': 0.6,
        },
    ),
)


class Figure(figure_lib.Figure):
  """A figure that notebooks show in its own style, whatever theirs is."""

  def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
    del options  # the types to include or exclude; there is only one
    picture = render(self, dots_per_inch=_SCREEN_DOTS_PER_INCH)
    return {'image/png': base64.b64encode(picture).decode()}


def render(
    figure: figure_lib.Figure,
    kind: str = 'png',
    *,
    records: Sequence[Any] = (),
    dots_per_inch: int = _DOTS_PER_INCH,
) -> bytes:
  """Return the file of a figure, with the same bytes for the same figure.

  The figure was drawn under `applied`. Its kind is 'png' or 'pdf', and its
  metadata keep the digest of the records that it was made from.
  """
  metadata = dict(_METADATA[kind])
  if records:
    metadata[_DIGEST_KEY[kind]] = markdown.digest_note(records)
  file = io.BytesIO()
  with applied():
    figure.savefig(file, dpi=dots_per_inch, metadata=metadata, format=kind)
  return file.getvalue()


def panels(
    x_label: str,
    y_labels: Sequence[str],
    axes_in: float,
    width_in: float = COLUMN_IN,
) -> tuple[figure_lib.Figure, list[axes_lib.Axes]]:
  """Return an empty figure with axes below each other, of one x axis."""
  size = width_in, _REST_IN + axes_in * len(y_labels)
  figure = Figure(size, layout='constrained')
  all_axes = figure.subplots(len(y_labels), sharex=True, squeeze=False)[:, 0]
  for axes, y_label in zip(all_axes, y_labels):
    axes.set_ylabel(y_label)
    axes.grid(True)
    axes.set_axisbelow(True)
  all_axes[-1].set_xlabel(x_label)
  return figure, list(all_axes)
