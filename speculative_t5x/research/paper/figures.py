# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures 2, 3 and 4 of the paper, with measured runs as points.

`theory` computes the curves over the paper's range of alpha, which is widened
if a point lies outside. A pair has one colour and one marker, filled at
temperature 0 and open above it. Runs that differ in gamma only are a sweep. A
dash is what Theorem 3.8 gives at the alpha and c of a run, which the curves of
Figures 3 and 4 do not have.
"""

from collections.abc import Iterable, Mapping, Sequence
import math

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines
from matplotlib import patheffects
import numpy as np

from speculative_t5x.research import figure_style
from speculative_t5x.research.paper import points as points_lib
from speculative_t5x.research.paper import published
from speculative_t5x.speculation import theory

_ALPHA_LABEL = 'acceptance probability α'
_NUM_ALPHAS = 401
_MARGIN = 0.02  # of alpha, beyond a point outside the paper's range
_AXES_IN = 2.2  # height, inches
_WIDE_IN = 2.8  # height of axes that hold a number beside each mark
_FILLED = 'filled: T = 0, open: T > 0'
_NUMBERS = 'numbers: γ'
_DASH = 'dash: Theorem 3.8 at α and c'
_RATIOS = 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10, 15  # ticks
_ON_WHITE = [patheffects.withStroke(linewidth=1.5, foreground='white')]
_SLOWER = 1  # diameter of marks in Figure 3, points

Points = Sequence[points_lib.Point]
_Looks = Mapping[str, Mapping[str, str]]  # marker and colour of each pair


def figure_2(points: Points = ()) -> figure_lib.Figure:
  """Draw the tokens per target call over alpha: Equation (1), and measured."""
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        _ALPHA_LABEL, ['tokens per target call'], _WIDE_IN, figure_style.PAGE_IN
    )
    alphas = _alphas(points)
    for gamma, dashes in zip(published.FIGURE_2_GAMMAS, figure_style.DASHES):
      name = f'γ = {gamma:g}'.replace('inf', '∞')
      tokens = theory.expected_tokens(alphas, gamma)
      _draw_curve(axes, alphas, tokens, name, dashes)
    axes.axhline(1, color='silver', linewidth=0.8, label='plain')
    axes.legend(loc='upper left')
    # The curve of unlimited gamma goes to infinity.
    top = theory.expected_tokens(published.FIGURE_ALPHAS[1], math.inf)
    tokens = [point.run.tokens_per_target_call for point in points]
    _use_ratios(axes, [0.9, 1.1 * top], tokens)
    looks = _looks(points)
    for point, height in zip(points, tokens):
      _draw_numbered(axes, looks, point, height)
    _add_legend(figure, looks, [_FILLED, _NUMBERS])
  return figure


def figure_3(points: Points = ()) -> figure_lib.Figure:
  """Draw the best integer gamma over alpha: Section 3.5, and measured.

  Every gamma of a sweep has a mark, since the best one may lie beyond those
  that were run.
  """
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        _ALPHA_LABEL, ['best γ (draft tokens per target call)'], _AXES_IN
    )
    sweeps = [x for x in _sweeps(points) if len({p.run.gamma for p in x}) > 1]
    fastest = [max(sweep, key=lambda p: p.run.speedup) for sweep in sweeps]
    best = [theory.optimal_gamma(p.alpha, p.run.c) for p in fastest]
    alphas = _alphas(fastest)
    costs = published.FIGURE_3_COST_COEFFICIENTS
    limit = theory.optimal_gamma(published.FIGURE_ALPHAS[1], costs[0])
    top = 1.08 * max([limit, *best, *(p.run.gamma for x in sweeps for p in x)])
    for cost, dashes in zip(costs, figure_style.DASHES):
      gammas = theory.optimal_gamma(alphas, cost, math.ceil(top) + 1)
      _draw_curve(
          axes, alphas, gammas, f'c = {cost:g}', dashes, drawstyle='steps-mid'
      )
    axes.legend(loc='upper left')
    axes.set_ylim(0, top)
    looks = _looks(fastest)
    for sweep, first, gamma in zip(sweeps, fastest, best):
      _draw_dash(axes, looks, first, gamma)
      for point in sweep:
        size = figure_style.MARK_POINTS if point is first else _SLOWER
        _draw_mark(axes, looks, point, point.run.gamma, size)
    _add_legend(figure, looks, [_FILLED, 'large: fastest', _DASH])
  return figure


def figure_4(points: Points = ()) -> figure_lib.Figure:
  """Draw speed and operations, over those of plain decoding, over alpha.

  The curves assume that c and c-hat are 0. The paper draws both in the same
  axes. Here they have their own, to leave room for points: above, the speed
  (Theorem 3.8) with its 95 percent interval; below, the operations (Theorem
  3.11), curves alone.
  """
  with figure_style.applied():
    figure, (above, below) = figure_style.panels(
        _ALPHA_LABEL,
        ['speed (times plain)', 'operations (times plain)'],
        _WIDE_IN,
        figure_style.PAGE_IN,
    )
    alphas = _alphas(points)
    curves = {above: [], below: []}
    for gamma, dashes in zip(published.FIGURE_4_GAMMAS, figure_style.DASHES):
      curves[above].append(theory.walltime_factor(alphas, gamma, 0))
      curves[below].append(theory.operations_factor(alphas, gamma, 0))
      for axes, (*_, values) in curves.items():
        _draw_curve(axes, alphas, values, f'γ = {gamma}', dashes)
    looks = _looks(points)
    for point in points:
      run, color = point.run, looks[point.label]['color']
      predicted = theory.walltime_factor(point.alpha, run.gamma, run.c)
      _draw_dash(above, looks, point, predicted)
      if run.speedup_ci95 is not None:
        above.vlines(point.alpha, *run.speedup_ci95, color, linewidth=0.9)
      _draw_numbered(above, looks, point, run.speedup)
    intervals = [point.run.speedup_ci95 or () for point in points]
    speeds = [point.run.speedup for point in points]
    _use_ratios(above, *curves[above], speeds, *intervals)
    _use_ratios(below, *curves[below])
    above.legend(loc='upper left')
    _add_legend(figure, looks, [_FILLED, _NUMBERS, f'bar: 95%; {_DASH}'])
  return figure


def _alphas(points: Iterable[points_lib.Point]) -> np.ndarray:
  """Return alphas over the paper's range, widened to hold the points."""
  low, high = published.FIGURE_ALPHAS
  measured = [point.alpha for point in points]
  if any(alpha < low for alpha in measured):
    low = max(min(measured) - _MARGIN, 0)
  if any(alpha > high for alpha in measured):
    high = min(max(measured) + _MARGIN, 1)
  return np.linspace(low, high, _NUM_ALPHAS)


def _sweeps(points: Points) -> list[list[points_lib.Point]]:
  """Return the points in groups that differ in gamma only."""
  sweeps = {}
  for point in points:
    key = point.label, point.run.temperature, point.alpha
    sweeps.setdefault(key, []).append(point)
  return list(sweeps.values())


def _looks(points: Points) -> _Looks:
  """Return the look of each pair, by its label: 100 are different."""
  count = len(figure_style.MARKERS)
  return {
      label: {
          'marker': figure_style.MARKERS[i % count],
          'color': f'C{i + i // count}',
      }
      for i, label in enumerate(dict.fromkeys(p.label for p in points))
  }


def _draw_curve(
    axes: axes_lib.Axes, alphas, values, name: str, dashes, **options
) -> None:
  axes.plot(
      alphas, values, label=name, linestyle=dashes,
      color=figure_style.CURVE_COLOR, linewidth=0.8, **options,
  )  # fmt: skip


def _use_ratios(axes: axes_lib.Axes, *values: Sequence[float]) -> None:
  """Give equal ratios equal distances, and show all values."""
  shown = np.concatenate([np.ravel(each) for each in values])
  axes.set_yscale('log')
  axes.set_yticks(_RATIOS, [f'{ratio:g}' for ratio in _RATIOS])
  axes.set_yticks([], minor=True)
  axes.set_ylim(shown.min() / 1.1, shown.max() * 1.1)


def _draw_numbered(
    axes: axes_lib.Axes, looks: _Looks, point: points_lib.Point, height: float
) -> None:
  _draw_mark(axes, looks, point, height, figure_style.MARK_POINTS)
  axes.annotate(
      f'{point.run.gamma}', (point.alpha, height), xytext=(3, 2),
      textcoords='offset points', fontsize=figure_style.SMALL,
      path_effects=_ON_WHITE,
  )  # fmt: skip


def _draw_mark(
    axes: axes_lib.Axes,
    looks: _Looks,
    point: points_lib.Point,
    height: float,
    size: float,
) -> None:
  face = {'markerfacecolor': 'white'} if point.run.temperature > 0 else {}
  axes.plot(
      point.alpha, height, **looks[point.label], **face, markersize=size,
      markeredgewidth=0.8, linestyle='', clip_on=False, zorder=3,
  )  # fmt: skip


def _draw_dash(
    axes: axes_lib.Axes, looks: _Looks, point: points_lib.Point, height: float
) -> None:
  axes.plot(
      point.alpha, height, color=looks[point.label]['color'], marker='_',
      markersize=1.8 * figure_style.MARK_POINTS, markeredgewidth=1.2,
      linestyle='', clip_on=False,
  )  # fmt: skip


def _add_legend(
    figure: figure_lib.Figure, looks: _Looks, notes: Sequence[str]
) -> None:
  """Add a legend with notes below finished axes; make the figure taller."""
  if not looks:
    return
  num_lines = len(notes) + len(looks)
  height = figure.get_figheight() + figure_style.LEGEND_LINE_IN * num_lines
  figure.set_figheight(height)
  figure.legend(
      handles=[
          lines.Line2D([], [], linestyle='', markersize=4, label=label, **look)
          for label, look in looks.items()
      ],
      loc='outside lower center',
      title='\n'.join(notes),
      title_fontsize=6.5,
      handlelength=1,
      labelspacing=0.3,
  )
