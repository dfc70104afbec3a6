# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures 2, 3 and 4 of the paper, with measured runs as points.

`theory` computes the curves over the paper's range of alpha, which is widened
if a point lies outside. The marker of a point stands for the label of its run.
The number beside it is its gamma; markers that overlap share a list of gammas.

Legend: alpha (mean probability that a draft token is accepted); gamma (draft
tokens per target call); c (time of a draft step over that of a target step,
Definition 3.7).
"""

from collections.abc import Iterable, Sequence
import functools
import itertools
import math
import textwrap

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines
import numpy as np

from speculative_t5x import figure_style
from speculative_t5x.paper import numbering
from speculative_t5x.paper import points as points_lib
from speculative_t5x.paper import published
from speculative_t5x.speculation import theory

_ALPHA_LABEL = 'acceptance probability α'
_NUM_ALPHAS = 401
_MARGIN = 0.02  # of alpha, beyond a point outside the paper's range
_LONG_LABEL = 24  # characters; with longer labels a legend has one column
_LINE = 52  # characters per line of a legend
_TITLE = 'runs (number: γ{})'

Points = Sequence[points_lib.Point]


def figure_2(points: Points = ()) -> figure_lib.Figure:
  """Draws the tokens per target call over alpha: Equation (1), and measured.

  Raises:
    ValueError: if there are more labels than markers.
  """
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        _ALPHA_LABEL, ['tokens per target call']
    )
    alphas = _alphas(points)
    gammas = published.FIGURE_2_GAMMAS
    curves = [theory.expected_tokens(alphas, gamma) for gamma in gammas]
    # The curve of unlimited gamma goes to infinity.
    tops = [curve[-1] for curve in curves[:-1]]
    tops += [theory.expected_tokens(published.FIGURE_ALPHAS[1], math.inf)]
    tops += [point.tokens_per_call for point in points]
    axes.set_ylim(0, 1.05 * max(tops))
    for curve, gamma, color, dashes in zip(
        curves, gammas, figure_style.COLORS, figure_style.DASHES
    ):
      axes.plot(alphas, curve, color=color, linestyle=dashes)
      name = f'γ = {gamma:g}'.replace('inf', '∞')
      figure_style.label_end(axes, alphas, curve, name)
    baseline = np.ones_like(alphas)
    axes.plot(alphas, baseline, color='#888888', linewidth=0.8)
    figure_style.label_end(axes, alphas, baseline, 'plain')
    marks = _marks(points)
    tokens = [point.tokens_per_call for point in points]
    _scatter(axes, points, tokens, marks)
    _name_marks(figure, marks, _TITLE.format(''), {x: x for x in marks})
    _number(axes, points, tokens)
  return figure


def figure_3(points: Points = ()) -> figure_lib.Figure:
  """Draws the best integer gamma over alpha: Section 3.5, and measured.

  Args:
    points: those with the same label are a sweep of gamma. The fastest point of
      a sweep is drawn, with a bar over the adjacent gammas whose intervals
      overlap its own. Labels with a single gamma are left out.
  Raises:
    ValueError: if there are more labels than markers.
  """
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        _ALPHA_LABEL, ['best γ (draft tokens per target call)']
    )
    sweeps = _sweeps(points)
    best = {label: _fastest(sweep) for label, sweep in sweeps.items()}
    alphas = _alphas(best.values())
    costs = published.FIGURE_3_COST_COEFFICIENTS
    tops = [theory.optimal_gamma(published.FIGURE_ALPHAS[1], costs[0])]
    tops += [point.gamma for point in best.values()]
    top = 1.08 * max(tops)
    axes.set_ylim(0, top)
    for cost, color, dashes in zip(
        costs, figure_style.COLORS, figure_style.DASHES
    ):
      gammas = theory.optimal_gamma(alphas, cost, math.ceil(top) + 1)
      axes.plot(
          alphas, gammas, color=color, linestyle=dashes, label=f'c = {cost:g}',
          drawstyle='steps-mid',
      )  # fmt: skip
    axes.legend(loc='upper left')
    marks = _marks(best.values())
    for label, point in best.items():
      _draw_bar(axes, point.alpha, *_indistinguishable(sweeps[label], point))
    gammas = [point.gamma for point in best.values()]
    _scatter(axes, best.values(), gammas, marks)
    names = {
        # Keeps lines of the legend from ending within the brackets.
        label: f'{label} (c\xa0=\xa0{point.cost_coefficient:.2g})'
        for label, point in best.items()
    }
    _name_marks(figure, marks, _TITLE.format('; bar: intervals overlap'), names)
    _number(axes, list(best.values()), gammas)
  return figure


def figure_4(points: Points = ()) -> figure_lib.Figure:
  """Draws speed and operations, over those of plain decoding, over alpha.

  The curves assume that c and c-hat are 0. The paper draws both in the same
  axes. Here they have their own, to leave room for points: above, the speed
  (Theorem 3.8) with its 95 percent interval; below, the operations (Theorem
  3.11) of runs in which they were counted.

  Raises:
    ValueError: if there are more labels than markers.
  """
  with figure_style.applied():
    figure, (above, below) = figure_style.panels(
        _ALPHA_LABEL, ['speed (times plain)', 'operations (times plain)']
    )
    alphas = _alphas(points)
    marks = _marks(points)
    _draw_speeds(above, alphas, points, marks)
    counted = [p for p in points if p.operations_factor is not None]
    _draw_operations(below, alphas, counted, marks)
    title = _TITLE.format('; bar: 95% interval')
    _name_marks(figure, marks, title, {label: label for label in marks})
    _number(above, points, [point.speedup for point in points])
    _number(below, counted, [point.operations_factor for point in counted])
  return figure


def _draw_speeds(
    axes: axes_lib.Axes,
    alphas: np.ndarray,
    points: Points,
    marks: dict[str, str],
) -> None:
  for gamma, color in zip(published.FIGURE_4_GAMMAS, figure_style.COLORS):
    speed = theory.walltime_factor(alphas, gamma, 0)
    axes.plot(alphas, speed, color=color)
    figure_style.label_end(axes, alphas, speed, f'γ = {gamma}')
  for point in points:
    if point.speedup_ci95 is not None:
      _draw_bar(axes, point.alpha, *point.speedup_ci95)
  _scatter(axes, points, [point.speedup for point in points], marks)
  axes.set_ylim(bottom=0)


def _draw_operations(
    axes: axes_lib.Axes,
    alphas: np.ndarray,
    points: Points,
    marks: dict[str, str],
) -> None:
  figure_style.scale_at_right(axes)  # the curves are named on the left
  for gamma, color in zip(published.FIGURE_4_GAMMAS, figure_style.COLORS):
    operations = theory.operations_factor(alphas, gamma, 0)
    axes.plot(alphas, operations, color=color, linestyle=':')
    start = alphas[0], operations[0]
    figure_style.note(
        axes, f'γ = {gamma}', start, (-3, 0), ha='right', va='center'
    )
  operations = [point.operations_factor for point in points]
  _scatter(axes, points, operations, marks, color='white')
  axes.set_ylim(bottom=0)


def _alphas(points: Iterable[points_lib.Point]) -> np.ndarray:
  """Returns alphas over the paper's range, widened to hold the points."""
  low, high = published.FIGURE_ALPHAS
  measured = [point.alpha for point in points]
  if any(alpha < low for alpha in measured):
    low = max(min(measured) - _MARGIN, 0)
  if any(alpha > high for alpha in measured):
    high = min(max(measured) + _MARGIN, 1)
  return np.linspace(low, high, _NUM_ALPHAS)


def _sweeps(points: Points) -> dict[str, list[points_lib.Point]]:
  """Returns the points by label, for labels with more than one gamma."""
  sweeps = {}
  for point in points:
    sweeps.setdefault(point.label, []).append(point)
  return {
      label: sweep
      for label, sweep in sweeps.items()
      if len({point.gamma for point in sweep}) > 1
  }


def _fastest(sweep: Points) -> points_lib.Point:
  return max(sweep, key=lambda point: point.speedup)


def _indistinguishable(
    sweep: Points, best: points_lib.Point
) -> tuple[int, int]:
  """Returns the range of gammas around the best whose intervals overlap."""
  gammas = sorted(sweep, key=lambda point: point.gamma)
  place = gammas.index(best)
  overlaps = functools.partial(_overlaps, best=best)
  below = itertools.takewhile(overlaps, reversed(gammas[:place]))
  above = itertools.takewhile(overlaps, gammas[place + 1 :])
  *_, least = best, *below
  *_, most = best, *above
  return least.gamma, most.gamma


def _overlaps(point: points_lib.Point, best: points_lib.Point) -> bool:
  if point.speedup_ci95 is None or best.speedup_ci95 is None:
    return False
  return point.speedup_ci95[1] >= best.speedup_ci95[0]


def _marks(points: Iterable[points_lib.Point]) -> dict[str, str]:
  """Returns the marker of each label."""
  labels = list(dict.fromkeys(point.label for point in points))
  if len(labels) > len(figure_style.MARKERS):
    raise ValueError(
        f'A figure has markers for {len(figure_style.MARKERS)} labels; got'
        f' {len(labels)}. Draw fewer runs per figure.'
    )
  return dict(zip(labels, figure_style.MARKERS))


def _draw_bar(axes: axes_lib.Axes, x: float, low: float, high: float) -> None:
  axes.vlines(x, low, high, color='black', linewidth=0.7, clip_on=False)


def _scatter(
    axes: axes_lib.Axes,
    points: Iterable[points_lib.Point],
    heights: Sequence[float],
    marks: dict[str, str],
    color: str = figure_style.POINT_COLOR,
) -> None:
  for point, height in zip(points, heights):
    axes.scatter(
        point.alpha, height, s=figure_style.MARK_POINTS**2,
        marker=marks[point.label], facecolor=color, edgecolor='black',
        linewidth=0.6, zorder=3, clip_on=False,
    )  # fmt: skip


def _number(
    axes: axes_lib.Axes, points: Points, heights: Sequence[float]
) -> None:
  numbering.number(
      axes,
      [
          numbering.Mark(point.alpha, height, point.gamma)
          for point, height in zip(points, heights, strict=True)
      ],
  )


def _name_marks(
    figure: figure_lib.Figure,
    marks: dict[str, str],
    title: str,
    names: dict[str, str],
) -> None:
  """Adds a legend below the axes, and makes the figure taller by it."""
  if not marks:
    return
  texts = {key: textwrap.fill(name, _LINE) for key, name in names.items()}
  handles = [
      lines.Line2D(
          [], [], linestyle='', marker=marker, markersize=4,
          markerfacecolor=figure_style.POINT_COLOR, markeredgecolor='black',
          markeredgewidth=0.6, label=texts[label],
      )
      for label, marker in marks.items()
  ]  # fmt: skip
  columns = 1 if max(map(len, texts.values())) > _LONG_LABEL else 2
  num_lines = sum(text.count('\n') + 1 for text in texts.values()) / columns
  num_lines = math.ceil(num_lines) + 1  # the title
  width, height = figure.get_size_inches()
  legend_height = figure_style.LEGEND_LINE_IN * num_lines
  figure.set_size_inches(width, height + legend_height)
  figure.legend(
      handles=handles, loc='outside lower center', ncols=columns,
      title=title, title_fontsize=6.5, handlelength=1,
      labelspacing=0.3, columnspacing=1,
  )  # fmt: skip
