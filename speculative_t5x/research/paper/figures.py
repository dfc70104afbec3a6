# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures 2, 3 and 4 of the paper, with measured runs as points.

`theory` computes the curves over the paper's range of alpha, which is widened
if a point lies outside. A pair has one colour and one marker, filled at
temperature 0 and open above it. The number beside a point is its gamma; markers
that overlap share a list of gammas. A dash is what the theory gives at the
alpha and c of a run, which the curves of Figures 3 and 4 do not have.

Legend: alpha (mean probability that a draft token is accepted); gamma (draft
tokens per target call); c (time of a draft step over that of a target step,
Definition 3.7).
"""

from collections.abc import Iterable, Mapping, Sequence
import functools
import itertools
import math
import textwrap

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines
from matplotlib import transforms
import numpy as np

from speculative_t5x.research import figure_style
from speculative_t5x.research.paper import points as points_lib
from speculative_t5x.research.paper import published
from speculative_t5x.speculation import theory

_ALPHA_LABEL = 'acceptance probability α'
_NUM_ALPHAS = 401
_MARGIN = 0.02  # of alpha, beyond a point outside the paper's range
_AXES_IN = 2.2  # height, inches
_LINE = 58  # characters per line of a legend
_MARKERS = 'number: γ; filled: T = 0, open: T > 0'

Points = Sequence[points_lib.Point]
_Looks = Mapping[str, tuple[str, str]]  # marker and colour of each pair


def figure_2(points: Points = ()) -> figure_lib.Figure:
  """Draws the tokens per target call over alpha: Equation (1), and measured.

  Raises:
    ValueError: if there are more pairs than markers.
  """
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        _ALPHA_LABEL, ['tokens per target call'], _AXES_IN
    )
    alphas = _alphas(points)
    gammas = published.FIGURE_2_GAMMAS
    curves = [theory.expected_tokens(alphas, gamma) for gamma in gammas]
    # The curve of unlimited gamma goes to infinity.
    tops = [curve[-1] for curve in curves[:-1]]
    tops += [theory.expected_tokens(published.FIGURE_ALPHAS[1], math.inf)]
    tops += [point.tokens_per_call for point in points]
    axes.set_ylim(0, 1.05 * max(tops))
    names = [f'γ = {gamma:g}'.replace('inf', '∞') for gamma in gammas]
    for curve, name, dashes in zip(
        [*curves, np.ones_like(alphas)],
        [*names, 'plain'],
        [*figure_style.DASHES, '-'],
        strict=True,
    ):
      _draw_curve(axes, alphas, curve, linestyle=dashes)
      figure_style.label_end(axes, alphas, curve, name)
    looks = _looks(points)
    tokens = [point.tokens_per_call for point in points]
    _draw_points(axes, looks, points, tokens)
    _add_legend(figure, looks, [_MARKERS])
    _number(axes, points, tokens)
  return figure


def figure_3(points: Points = ()) -> figure_lib.Figure:
  """Draws the best integer gamma over alpha: Section 3.5, and measured.

  The legend says which gammas were run, since the best may lie beyond them, and
  which is the best by Theorem 3.8 at the alpha and c of the run.

  Args:
    points: those of one pair, temperature and alpha are a sweep of gamma. The
      fastest point of a sweep is drawn, with a bar over the adjacent gammas
      whose intervals overlap its own. Single gammas are left out.
  Raises:
    ValueError: if there are more pairs than markers.
  """
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        _ALPHA_LABEL, ['best γ (draft tokens per target call)'], _AXES_IN
    )
    sweeps = _sweeps(points)
    best = [max(sweep, key=lambda point: point.speedup) for sweep in sweeps]
    expected = [
        int(theory.optimal_gamma(point.alpha, point.cost_coefficient))
        for point in best
    ]
    alphas = _alphas(best)
    costs = published.FIGURE_3_COST_COEFFICIENTS
    tops = [theory.optimal_gamma(published.FIGURE_ALPHAS[1], costs[0])]
    tops += [*expected, *(point.gamma for point in best)]
    top = 1.08 * max(tops)
    axes.set_ylim(0, top)
    for cost, dashes in zip(costs, figure_style.DASHES):
      _draw_curve(
          axes,
          alphas,
          theory.optimal_gamma(alphas, cost, math.ceil(top) + 1),
          linestyle=dashes,
          label=f'c = {cost:g}',
          drawstyle='steps-mid',
      )
    axes.legend(loc='upper left')
    looks = _looks(best)
    gammas = [point.gamma for point in best]
    bars = list(map(_indistinguishable, sweeps, best))
    _draw_points(axes, looks, best, gammas, bars, expected)
    notes = [
        _MARKERS,
        'bar: γ whose intervals overlap; dash: Theorem 3.8 at α and c',
    ]
    remarks = map(_sweep_words, sweeps, best, expected)
    _add_legend(figure, looks, notes, remarks)
    _number(axes, best, gammas)
  return figure


def figure_4(points: Points = ()) -> figure_lib.Figure:
  """Draws speed and operations, over those of plain decoding, over alpha.

  The curves assume that c and c-hat are 0; the dashes have the c of each run.
  The paper draws both in the same axes. Here they have their own, to leave room
  for points: above, the speed (Theorem 3.8) with its 95 percent interval;
  below, the operations (Theorem 3.11) of runs in which they were counted.

  Raises:
    ValueError: if there are more pairs than markers.
  """
  with figure_style.applied():
    figure, (above, below) = figure_style.panels(
        _ALPHA_LABEL,
        ['speed (times plain)', 'operations (times plain)'],
        _AXES_IN,
    )
    figure_style.scale_at_right(below)  # its curves are named on the left
    alphas = _alphas(points)
    for gamma in published.FIGURE_4_GAMMAS:
      speed = theory.walltime_factor(alphas, gamma, 0)
      _draw_curve(above, alphas, speed, linestyle='-')
      figure_style.label_end(above, alphas, speed, f'γ = {gamma}')
      operations = theory.operations_factor(alphas, gamma, 0)
      _draw_curve(below, alphas, operations, linestyle=':')
      start = alphas[0], operations[0]
      figure_style.note(
          below, f'γ = {gamma}', start, (-3, 0), ha='right', va='center'
      )
    looks = _looks(points)
    expected = [
        float(theory.walltime_factor(p.alpha, p.gamma, p.cost_coefficient))
        for p in points
    ]
    speeds = [point.speedup for point in points]
    bars = [point.speedup_ci95 for point in points]
    _draw_points(above, looks, points, speeds, bars, expected)
    counted = [p for p in points if p.operations_factor is not None]
    operations = [point.operations_factor for point in counted]
    _draw_points(below, looks, counted, operations)
    for axes in (above, below):
      axes.set_ylim(bottom=0)
    notes = [_MARKERS, 'bar: 95% interval; dash: Theorem 3.8 at α and c']
    _add_legend(figure, looks, notes)
    _number(above, points, speeds)
    _number(below, counted, operations)
  return figure


def _draw_curve(axes: axes_lib.Axes, alphas, values, **options) -> None:
  color = figure_style.CURVE_COLOR
  axes.plot(alphas, values, color=color, linewidth=0.8, **options)


def _alphas(points: Iterable[points_lib.Point]) -> np.ndarray:
  """Returns alphas over the paper's range, widened to hold the points."""
  low, high = published.FIGURE_ALPHAS
  measured = [point.alpha for point in points]
  if any(alpha < low for alpha in measured):
    low = max(min(measured) - _MARGIN, 0)
  if any(alpha > high for alpha in measured):
    high = min(max(measured) + _MARGIN, 1)
  return np.linspace(low, high, _NUM_ALPHAS)


def _sweeps(points: Points) -> list[Points]:
  """Returns the points that differ in gamma only, those of several gammas."""
  sweeps = {}
  for point in points:
    key = point.label, point.temperature, point.alpha
    sweeps.setdefault(key, []).append(point)
  return [
      sweep
      for sweep in sweeps.values()
      if len({point.gamma for point in sweep}) > 1
  ]


def _sweep_words(
    sweep: Points, best: points_lib.Point, expected: int
) -> tuple[str, str]:
  """Returns the label of a sweep, and a line of the legend on it."""
  run = {point.gamma for point in sweep}
  limit = ', largest' if best.gamma == max(run) else ''
  return best.label, (
      f'T = {best.temperature:g}: γ {best.gamma}{limit} of'
      f' {listed(run)}; theory {expected} at'
      f' c\xa0=\xa0{best.cost_coefficient:.2g}'
  )


def listed(gammas: Iterable[int]) -> str:
  """Returns a list of gammas, such as "2, 4" or "1–3, 5"."""
  runs = []
  for gamma in sorted(gammas):
    if runs and gamma == runs[-1][-1] + 1:
      runs[-1].append(gamma)
    else:
      runs.append([gamma])
  return ', '.join(
      f'{run[0]}–{run[-1]}' if len(run) > 2 else ', '.join(map(str, run))
      for run in runs
  )


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


def _looks(points: Iterable[points_lib.Point]) -> _Looks:
  labels = list(dict.fromkeys(point.label for point in points))
  looks = [*zip(figure_style.MARKERS, figure_style.PAIR_COLORS)]
  if len(labels) > len(looks):
    raise ValueError(
        f'A figure has markers for {len(looks)} pairs; got {len(labels)}. Draw'
        ' fewer runs per figure.'
    )
  return dict(zip(labels, looks))


def _draw_points(
    axes: axes_lib.Axes,
    looks: _Looks,
    points: Points,
    heights: Sequence[float],
    bars: Sequence[tuple[float, float] | None] = (),
    expected: Sequence[float] = (),
) -> None:
  """Draws the marks of points, with bars and dashes where they are given.

  Args:
    axes: the axes to draw in.
    looks: marker and colour of each pair, by its label.
    points: measured runs.
    heights: heights of their marks.
    bars: lower and upper ends of their bars, None for no bar.
    expected: heights of their dashes.
  """
  for point, ends in zip(points, bars):
    if ends is not None:
      color = looks[point.label][1]
      axes.vlines(point.alpha, *ends, color=color, linewidth=0.9, clip_on=False)
  for point, height in zip(points, expected):
    axes.plot(
        [point.alpha], [height], marker='_', color=looks[point.label][1],
        markersize=1.8 * figure_style.MARK_POINTS, markeredgewidth=1.2,
        linestyle='', clip_on=False,
    )  # fmt: skip
  for point, height in zip(points, heights, strict=True):
    marker, color = looks[point.label]
    face = 'white' if point.temperature > 0 else color
    axes.scatter(
        point.alpha, height, s=figure_style.MARK_POINTS**2, linewidth=0.8,
        zorder=3, clip_on=False, marker=marker, facecolor=face, edgecolor=color,
    )  # fmt: skip


def _number(
    axes: axes_lib.Axes, points: Points, heights: Sequence[float]
) -> None:
  """Writes the gamma of each mark beside it; marks that overlap share a list.

  Of the places right, left, above and below, a list takes the first that covers
  the fewest marks and texts.

  Args:
    axes: axes of a figure that is otherwise finished.
    points: measured runs.
    heights: heights of their marks.
  """
  axes.figure.draw_without_rendering()  # moves the axes to their final place
  pixels = axes.figure.dpi / 72
  size, away = figure_style.MARK_POINTS * pixels, figure_style.MARK_POINTS
  data = np.reshape([(p.alpha, h) for p, h in zip(points, heights)], (-1, 2))
  places = axes.transData.transform(data)
  groups: list[list[int]] = []  # indices of marks, upwards
  for index in np.lexsort(places.T).tolist():
    for group in groups:
      across, up = abs(places[index] - places[group[-1]])
      if across < size / 2 and up < figure_style.SMALL * pixels:
        group.append(index)
        break
    else:
      groups.append([index])
  taken = [text.get_window_extent() for text in axes.texts]
  taken += [
      transforms.Bbox.from_bounds(*place - size / 2, size, size)
      for place in places
  ]
  for group in sorted(groups, key=len, reverse=True):  # long lists first
    text = listed({points[index].gamma for index in group})
    low, high = data[group[0]], data[group[-1]]
    middle = data[group].mean(axis=0)
    notes = [
        figure_style.note(axes, text, at, offset, ha=ha, va=va)
        for at, offset, ha, va in (
            (middle, (away, 0), 'left', 'center'),
            (middle, (-away, 0), 'right', 'center'),
            (high, (0, away), 'center', 'bottom'),
            (low, (0, -away), 'center', 'top'),
            (high, (0, 3 * away), 'center', 'bottom'),
            (low, (0, -3 * away), 'center', 'top'),
        )
    ]
    covered = [note.get_window_extent().count_overlaps(taken) for note in notes]
    kept = notes.pop(int(np.argmin(covered)))
    taken.append(kept.get_window_extent().padded(size / 2))
    for note in notes:
      note.remove()


def _add_legend(
    figure: figure_lib.Figure,
    looks: _Looks,
    notes: Sequence[str],
    remarks: Iterable[tuple[str, str]] = (),
) -> None:
  """Adds a legend below the axes, and makes the figure taller by it.

  Args:
    figure: a figure that is otherwise finished.
    looks: marker and colour of each pair, by its label.
    notes: how to read the marks, a line each.
    remarks: labels, each with a further line on its pair.
  """
  if not looks:
    return
  texts = {label: textwrap.wrap(label, _LINE) for label in looks}
  for label, remark in remarks:
    texts[label] += textwrap.wrap(remark, _LINE, subsequent_indent='   ')
  handles = [
      lines.Line2D(
          [], [], linestyle='', marker=marker, markersize=4, color=color,
          label='\n'.join(texts[label]),
      )
      for label, (marker, color) in looks.items()
  ]  # fmt: skip
  num_lines = len(notes) + sum(map(len, texts.values()))
  width, height = figure.get_size_inches()
  legend_height = figure_style.LEGEND_LINE_IN * num_lines
  figure.set_size_inches(width, height + legend_height)
  figure.legend(
      handles=handles, loc='outside lower center', title='\n'.join(notes),
      title_fontsize=6.5, handlelength=1, labelspacing=0.3,
  )  # fmt: skip
