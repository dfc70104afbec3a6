# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures hold the paper's curves and the points that were measured."""

import dataclasses
import io
import json

from matplotlib import collections
from matplotlib import colors
import numpy as np
from PIL import Image
import pytest

from speculative_t5x.research import figure_style
from speculative_t5x.research import run_record
from speculative_t5x.research.paper import figures
from speculative_t5x.research.paper import points as points_lib
from speculative_t5x.research.reports import digest
from tests.research.paper import records

_POINT = points_lib.Point(
    label='a draft',
    temperature=0.0,
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


def _dashes(axes):
  """Places of what the theory gives for a run."""
  return [
      (line.get_xdata()[0], line.get_ydata()[0])
      for line in axes.lines
      if line.get_marker() == '_'
  ]


def _texts(axes):
  return [text.get_text() for text in axes.texts]


def _legend(figure):
  return [text.get_text() for text in figure.legends[0].get_texts()]


class TestCurves:

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

  def test_figure_3_has_the_fastest_of_a_sweep(self):
    figure = figures.figure_3(_sweep((2, 1.5), (4, 1.72), (6, 1.7), (8, 1.6)))
    (axes,) = figure.axes
    assert _marked(axes) == [(0.7, 4)]
    # Theorem 3.8 at the alpha and c of the sweep; both lie within those run.
    assert _dashes(axes) == [(0.7, 6)]
    words = 'T = 0: γ 4 of 2, 4, 6, 8; theory 6 at c\xa0=\xa00.04'
    assert _legend(figure) == [f'a draft\n{words}']
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

  def test_figure_3_says_which_gammas_were_run(self):
    """The best lies beyond them: 7 of 7 does not refute the theory."""
    points = [
        *_sweep((3, 1.5), (5, 1.7), (7, 1.9), alpha=0.9, cost_coefficient=0.02),
        *_sweep((3, 1.5), (7, 1.4), temperature=1.0),
    ]
    figure = figures.figure_3(points)
    (words,) = _legend(figure)  # one pair
    assert words.split('\n') == [
        'a draft',
        'T = 0: γ 7, largest of 3, 5, 7; theory 19 at c\xa0=\xa00.02',
        'T = 1: γ 3 of 3, 7; theory 6 at c\xa0=\xa00.04',
    ]
    assert _dashes(figure.axes[0]) == [(0.9, 19), (0.7, 6)]

  @pytest.mark.parametrize('make', _FIGURES)
  def test_a_pair_has_one_color(self, make):
    """Filled at temperature 0 and open above it; a marker each."""
    points = [
        point
        for label, temperature in (('a', 0.0), ('a', 1.0), ('b', 0.0))
        for point in _sweep(
            (3, 2.0), (5, 2.2), label=label, temperature=temperature
        )
    ]
    figure = make(points)
    for axes in figure.axes:
      drawn = [
          (colors.to_hex(each.get_edgecolor()[0]),
           colors.to_hex(each.get_facecolor()[0]))
          for each in axes.collections
          if isinstance(each, collections.PathCollection)
      ]  # fmt: skip
      first, second = figure_style.PAIR_COLORS[:2]
      looks = (first, first), (first, '#ffffff'), (second, second)
      assert set(drawn) == set(looks)
    handles = figure.legends[0].legend_handles
    assert len({handle.get_marker() for handle in handles}) == 2

  def test_figure_4(self):
    uncounted = dataclasses.replace(
        _POINT, label='another', alpha=0.6, operations_factor=None
    )
    figure = figures.figure_4([_POINT, uncounted])
    speed, operations = figure.axes
    assert _marked(speed) == [(0.7, 2.0), (0.6, 2.0)]
    assert _marked(operations) == [(0.7, 2.2)]
    # Theorem 3.8 at c 0.04 and gamma 5, as computed by hand.
    expected = [
        (alpha, (1 - alpha**6) / (1 - alpha) / (5 * 0.04 + 1))
        for alpha in (0.7, 0.6)
    ]
    np.testing.assert_allclose(_dashes(speed), expected)
    assert _legend(figure) == ['a draft', 'another']

  def test_marks_that_lie_together_share_a_text(self):
    points = _sweep((2, 1.5), (4, 1.51), (6, 3.0))
    assert _texts(figures.figure_4(points).axes[0])[5:] == ['2, 4', '6']

  @pytest.mark.parametrize('make', _FIGURES)
  @pytest.mark.parametrize('alpha', [0.08, 1.0])
  def test_the_axis_widens(self, make, alpha):
    figure = make(_sweep((3, 1.1), (5, 1.2), alpha=alpha))
    low, high = figure.axes[0].get_xlim()
    assert low <= alpha <= high
    assert low == (0.5 if alpha > 0.5 else pytest.approx(0.06))
    assert high == (0.9 if alpha < 0.9 else pytest.approx(min(alpha + 0.02, 1)))
    for axes in figure.axes:
      assert np.isfinite(axes.get_ylim()).all()

  def test_too_many_labels(self):
    points = [dataclasses.replace(_POINT, label=str(i)) for i in range(11)]
    with pytest.raises(ValueError, match='markers for 10 pairs; got 11'):
      figures.figure_2(points)

  def test_gammas_are_listed(self):
    assert figures.listed([7, 2, 1, 3, 5]) == '1–3, 5, 7'
    assert figures.listed([2, 1]) == '1, 2'

  def test_numbers_stand_beside_their_marks(self):
    """Of two marks beside each other, one has its number on the other side."""
    points = _sweep((2, 1.5)) + _sweep((5, 1.5), alpha=0.715)
    axes = figures.figure_4(points).axes[0]
    axes.figure.draw_without_rendering()
    boxes = {
        text.get_text(): text.get_window_extent() for text in axes.texts[5:]
    }
    marks = axes.transData.transform(_marked(axes))
    assert boxes['2'].x1 < marks[0][0] and boxes['5'].x0 > marks[1][0]


class TestRender:

  def test_the_same_bytes(self):
    points = _sweep((3, 2.0), (5, 2.2))
    make, figure = figures.figure_3, figures.figure_3(points)
    for kind, start in (('pdf', b'%PDF'), ('png', b'\x89PNG')):
      contents = {
          figure_style.render(each, kind, records=[{'a': 1}])
          for each in (make(points), figure, figure)
      }
      assert len(contents) == 1
      (content,) = contents
      assert content.startswith(start) and b'CreationDate' not in content
      note = digest.note([{'a': 1}])
      assert note.encode() in content
    image = Image.open(io.BytesIO(content))
    assert image.width == 990  # 3.3 inches
    assert image.text == {'Description': note}


class TestDigest:

  def test_of_what_the_records_say(self):
    """Neither their order nor a key without a value counts."""
    made = [records.measured(), records.measured(3)]
    found = digest.of(made)
    assert found == digest.of(made[::-1])
    dicts = [json.loads(run_record.to_json(each)) for each in made]
    assert found == digest.of([each | {'new_key': None} for each in dicts])
    changed = records.changed(made[0], 'alpha', value=0.71)
    assert found != digest.of([changed, made[1]])
    assert found != digest.of(made[:1])
