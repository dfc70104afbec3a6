# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures hold the paper's curves and the points that were measured."""

import dataclasses

import matplotlib
from matplotlib import collections
import numpy as np
import pytest

from speculative_t5x import figure_style
from speculative_t5x.paper import figures
from speculative_t5x.paper import points as points_lib

_POINT = points_lib.Point(
    label='a draft',
    alpha=0.7,
    gamma=5,
    cost_coefficient=0.04,
    tokens_per_call=2.9,
    speedup=2.0,
    speedup_ci95=(1.9, 2.1),
    operations_factor=2.2,
)
_FIGURES = (figures.figure_2, figures.figure_3, figures.figure_4)


def _sweep(*speeds_by_gamma, width=0.05, **changes):
  return [
      dataclasses.replace(
          _POINT,
          gamma=gamma,
          speedup=speed,
          speedup_ci95=(speed - width, speed + width),
          **changes,
      )
      for gamma, speed in speeds_by_gamma
  ]


def _marked(axes):
  """Places of the marks, in the order in which they were drawn."""
  return [
      tuple(collection.get_offsets()[0].tolist())
      for collection in axes.collections
      if isinstance(collection, collections.PathCollection)
  ]


def _settings():
  """Those of the process; matplotlib chooses its backend on being asked."""
  names = matplotlib.rcParams.keys() - {'backend'}
  return {name: matplotlib.rcParams[name] for name in names}


def _texts(axes):
  return [text.get_text() for text in axes.texts]


def _legend(figure):
  return [text.get_text() for text in figure.legends[0].get_texts()]


class TestCurves:

  @pytest.mark.parametrize(
      'make, counts',
      [
          (figures.figure_2, [6]),
          (figures.figure_3, [4]),
          (figures.figure_4, [5, 5]),
      ],
  )
  @pytest.mark.parametrize(
      'points', [[], _sweep((3, 2.0), (5, 2.2))], ids=['bare', 'measured']
  )
  def test_number_of_lines(self, make, counts, points):
    assert [len(axes.lines) for axes in make(points).axes] == counts

  @pytest.mark.parametrize('make', _FIGURES)
  def test_labelled_and_a_column_wide(self, make):
    figure = make()
    assert figure.get_figwidth() == 3.3
    assert figure.axes[-1].get_xlabel() == 'acceptance probability α'
    assert all(axes.get_ylabel() for axes in figure.axes)
    assert not figure.legends  # of points

  def test_figure_2(self):
    (axes,) = figures.figure_2().axes
    at_the_end = [line.get_ydata()[-1] for line in axes.lines]
    np.testing.assert_allclose(
        at_the_end, [1.9, 3.439, 4.68559, 5.6953279, 10, 1]
    )
    names = ['γ = 1', 'γ = 3', 'γ = 5', 'γ = 7', 'γ = ∞', 'plain']
    assert _texts(axes) == names
    assert axes.get_xlim() == (0.5, 0.9)

  def test_figure_3(self):
    (axes,) = figures.figure_3().axes
    ends = [line.get_ydata()[[0, -1]].tolist() for line in axes.lines]
    assert ends == [[5, 24], [4, 19], [3, 13], [2, 10]]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ['c = 0.01', 'c = 0.02', 'c = 0.05', 'c = 0.1']

  def test_figure_4(self):
    speed, operations = figures.figure_4().axes
    assert {line.get_linestyle() for line in speed.lines} == {'-'}
    assert {line.get_linestyle() for line in operations.lines} == {':'}
    # Without a draft's cost the tokens of gamma + 1 operations are the speed.
    for gamma, fast, costly in zip(
        (1, 3, 5, 7, 10), speed.lines, operations.lines
    ):
      product = fast.get_ydata() * costly.get_ydata()
      np.testing.assert_allclose(product, gamma + 1)
    names = [f'γ = {gamma}' for gamma in (1, 3, 5, 7, 10)]
    assert _texts(speed) == _texts(operations) == names


class TestPoints:

  def test_figure_2(self):
    figure = figures.figure_2([_POINT])
    (axes,) = figure.axes
    assert _marked(axes) == [(0.7, 2.9)]
    assert _texts(axes)[-1] == '5'
    assert _legend(figure) == ['a draft']

  def test_figure_3_has_the_fastest_of_a_sweep(self):
    figure = figures.figure_3(_sweep((2, 1.5), (4, 1.72), (6, 1.7), (8, 1.6)))
    (axes,) = figure.axes
    assert _marked(axes) == [(0.7, 4)]
    assert _legend(figure) == ['a draft (c\xa0=\xa00.04)']
    # The intervals of gammas 4 and 6 overlap.
    (bar,) = axes.collections[0].get_segments()
    assert bar[:, 1].tolist() == [4, 6]

  @pytest.mark.parametrize(
      'speeds, ends',
      [
          # Gamma 2 reaches the best too, but 4 between them is slower.
          (((2, 1.9), (4, 1.0), (6, 1.95), (8, 1.9), (10, 1.0)), [6, 8]),
          (((8, 1.0), (2, 1.91), (6, 1.9), (4, 1.9)), [2, 6]),
          (((2, 1.0), (4, 1.5), (6, 1.0)), [4, 4]),
      ],
  )
  def test_figure_3_has_no_slower_gamma_within_its_bar(self, speeds, ends):
    (axes,) = figures.figure_3(_sweep(*speeds)).axes
    (bar,) = axes.collections[0].get_segments()
    assert bar[:, 1].tolist() == ends

  def test_figure_3_without_intervals(self):
    points = [
        dataclasses.replace(point, speedup_ci95=None)
        for point in _sweep((2, 1.5), (4, 1.6))
    ]
    (axes,) = figures.figure_3(points).axes
    (bar,) = axes.collections[0].get_segments()
    assert bar[:, 1].tolist() == [4, 4]

  @pytest.mark.parametrize(
      'make, title',
      [
          (figures.figure_2, 'runs (number: γ)'),
          (
              figures.figure_3,
              'runs (number: γ; bar: intervals overlap)',
          ),
          (figures.figure_4, 'runs (number: γ; bar: 95% interval)'),
      ],
  )
  def test_what_numbers_and_bars_are(self, make, title):
    (legend,) = make(_sweep((3, 2.0), (5, 2.2))).legends
    assert legend.get_title().get_text() == title

  def test_figure_3_leaves_out_what_is_no_sweep(self):
    figure = figures.figure_3([_POINT])
    assert _marked(figure.axes[0]) == [] and not figure.legends

  def test_figure_4(self):
    uncounted = dataclasses.replace(
        _POINT, label='another', alpha=0.6, operations_factor=None
    )
    figure = figures.figure_4([_POINT, uncounted])
    speed, operations = figure.axes
    assert _marked(speed) == [(0.7, 2.0), (0.6, 2.0)]
    assert _marked(operations) == [(0.7, 2.2)]
    assert _legend(figure) == ['a draft', 'another']

  def test_marks_that_lie_together_share_a_text(self):
    points = _sweep((2, 1.5), (4, 1.51), (6, 3.0))
    assert _texts(figures.figure_4(points).axes[0])[5:] == ['2, 4', '6']

  @pytest.mark.parametrize('make', _FIGURES)
  @pytest.mark.parametrize('alpha', [0.08, 0.95, 1.0])
  def test_the_axis_widens(self, make, alpha):
    figure = make(_sweep((3, 1.1), (5, 1.2), alpha=alpha))
    low, high = figure.axes[0].get_xlim()
    assert low <= alpha <= high
    assert low == (0.5 if alpha > 0.5 else pytest.approx(0.06))
    assert high == (0.9 if alpha < 0.9 else pytest.approx(min(alpha + 0.02, 1)))
    for axes in figure.axes:
      assert np.isfinite(axes.get_ylim()).all()

  @pytest.mark.parametrize('make', _FIGURES)
  def test_too_many_labels(self, make):
    points = [
        point
        for i in range(13)
        for point in _sweep((3, 1.1), (5, 1.2), label=str(i))
    ]
    with pytest.raises(ValueError, match='markers for 12 labels; got 13'):
      make(points)


class TestSave:

  @pytest.mark.parametrize('make', _FIGURES)
  def test_the_same_bytes_in_both_files(self, make, tmp_path):
    points = _sweep((3, 2.0), (5, 2.2))
    first = figure_style.save(make(points), tmp_path / 'new' / 'at_c_0.1')
    figure = make(points)
    second = figure_style.save(figure, str(tmp_path / 'second'))
    third = figure_style.save(figure, tmp_path / 'third')
    assert [path.name for path in first] == ['at_c_0.1.pdf', 'at_c_0.1.png']
    for paths in zip(first, second, third):
      contents = {path.read_bytes() for path in paths}
      assert len(contents) == 1
    pdf, png = (path.read_bytes() for path in first)
    assert pdf.startswith(b'%PDF') and b'CreationDate' not in pdf
    assert png.startswith(b'\x89PNG')
    width = int.from_bytes(png[16:20], 'big')
    assert width == 990  # 3.3 inches

  def test_the_process_keeps_its_settings(self, tmp_path):
    with matplotlib.rc_context({'font.size': 33, 'lines.linewidth': 9}):
      before = _settings()
      figure = figures.figure_2()
      figure_style.save(figure, tmp_path / 'figure')
      assert _settings() == before
    assert figure.axes[0].lines[0].get_linewidth() == 1.1
