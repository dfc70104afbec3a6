# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures hold curves of the paper, and points that run records give."""

import dataclasses
import io
import json

import numpy as np
from PIL import Image
import pytest

from speculative_t5x.research import figure_style
from speculative_t5x.research import run_record
from speculative_t5x.research.paper import figures
from speculative_t5x.research.paper import points
from speculative_t5x.research.reports import markdown
from tests.research.paper import records

_RUN = dataclasses.replace(
    records.measured(5, tokens_per_call=2.9, c=0.04),
    speedup=2.0,
    speedup_ci95=(1.9, 2.1),
)
_FIGURES = (figures.figure_2, figures.figure_3, figures.figure_4)


def _point(label='a draft', alpha=0.7, **changes):
  run = dataclasses.replace(_RUN, **changes)
  return points.Point(label, alpha, run)


def _sweep(*speeds_by_gamma, **changes):
  return [
      _point(
          gamma=gamma,
          speedup=speed,
          speedup_ci95=(speed - 0.05, speed + 0.05),
          **changes,
      )
      for gamma, speed in speeds_by_gamma
  ]


def _curves(axes):
  return [line for line in axes.lines if line.get_marker() == 'None']


def _marks(axes):
  """Return alpha, height and size of each mark, and those of dashes."""
  marks, dashes = [], []
  for line in axes.lines:
    place = line.get_xdata()[0], line.get_ydata()[0]
    if line.get_marker() == '_':
      dashes.append(place)
    elif line.get_marker() != 'None':
      marks.append((*place, line.get_markersize()))
  return marks, dashes


def _names(legend):
  return [text.get_text() for text in legend.get_texts()]


class TestCurves:

  def test_figure_2(self):
    (axes,) = figures.figure_2().axes
    at_the_end = [line.get_ydata()[-1] for line in _curves(axes)]
    np.testing.assert_allclose(
        at_the_end, [1.9, 3.439, 4.68559, 5.6953279, 10, 1]
    )
    names = ['γ = 1', 'γ = 3', 'γ = 5', 'γ = 7', 'γ = ∞', 'plain']
    assert _names(axes.get_legend()) == names
    assert axes.get_xlim() == (0.5, 0.9)

  def test_figure_3(self):
    (axes,) = figures.figure_3().axes
    ends = [line.get_ydata()[[0, -1]].tolist() for line in _curves(axes)]
    assert ends == [[5, 24], [4, 19], [3, 13], [2, 10]]
    names = ['c = 0.01', 'c = 0.02', 'c = 0.05', 'c = 0.1']
    assert _names(axes.get_legend()) == names

  def test_figure_4(self):
    speed, operations = figures.figure_4().axes
    names = [f'γ = {gamma}' for gamma in (1, 3, 5, 7, 10)]
    assert _names(speed.get_legend()) == names
    # Without a draft's cost the tokens of gamma + 1 operations are the speed.
    for gamma, fast, costly in zip(
        (1, 3, 5, 7, 10), _curves(speed), _curves(operations), strict=True
    ):
      product = fast.get_ydata() * costly.get_ydata()
      np.testing.assert_allclose(product, gamma + 1)
      assert fast.get_linestyle() == costly.get_linestyle()


class TestPoints:

  def test_figure_3_marks_every_gamma(self):
    """The best may lie beyond those that were run: 7 of 7 refutes nothing."""
    points = [
        *_sweep((2, 1.5), (4, 1.72), (6, 1.7), (8, 1.6)),
        *_sweep((3, 1.5), (7, 1.9), alpha=0.9, c=0.02),
        *_sweep((5, 3.0), alpha=0.8),  # a single one
    ]
    (axes,) = figures.figure_3(points).axes
    marks, dashes = _marks(axes)
    large, small = 4, 1
    assert marks == [
        (0.7, 2, small), (0.7, 4, large), (0.7, 6, small), (0.7, 8, small),
        (0.9, 3, small), (0.9, 7, large),
    ]  # fmt: skip
    # Theorem 3.8 at the alpha and c of the sweeps.
    assert dashes == [(0.7, 6), (0.9, 19)]

  def test_figure_4(self):
    figure = figures.figure_4([_point(), _point('another', alpha=0.6)])
    speed, _ = figure.axes
    marks, dashes = _marks(speed)
    assert [mark[:2] for mark in marks] == [(0.7, 2.0), (0.6, 2.0)]
    # Theorem 3.8 at c 0.04 and gamma 5, as computed by hand.
    expected = [
        (alpha, (1 - alpha**6) / (1 - alpha) / (5 * 0.04 + 1))
        for alpha in (0.7, 0.6)
    ]
    np.testing.assert_allclose(dashes, expected)
    (bar, _) = speed.collections
    np.testing.assert_allclose(bar.get_segments(), [[(0.7, 1.9), (0.7, 2.1)]])
    assert _names(figure.legends[0]) == ['a draft', 'another']

  @pytest.mark.parametrize('make', _FIGURES)
  @pytest.mark.parametrize('alpha', [0.08, 1.0])
  def test_the_axis_widens(self, make, alpha):
    figure = make(_sweep((3, 1.1), (5, 1.2), alpha=alpha))
    low, high = figure.axes[0].get_xlim()
    assert low == (0.5 if alpha > 0.5 else pytest.approx(0.06))
    assert high == (0.9 if alpha < 0.9 else pytest.approx(min(alpha + 0.02, 1)))
    for axes in figure.axes:
      assert np.isfinite(axes.get_ylim()).all()


@pytest.mark.parametrize('kind', ['pdf', 'png'])
def test_the_same_bytes_are_rendered(kind):
  points = _sweep((3, 2.0), (5, 2.2))
  figure = figures.figure_3(points)
  content, *others = (
      figure_style.render(each, kind, records=[{'a': 1}])
      for each in (figures.figure_3(points), figure, figure)
  )
  assert others == [content] * 2 and b'CreationDate' not in content
  note = markdown.digest_note([{'a': 1}])
  assert note.encode() in content
  if kind == 'png':
    image = Image.open(io.BytesIO(content))
    assert image.width == 990  # 3.3 inches
    assert image.text == {'Description': note}


def test_digest_of_what_the_records_say():
  """Neither their order nor a key without a value counts."""
  made = [records.measured(), records.measured(3)]
  found = markdown.digest_note(made)
  assert found == markdown.digest_note(made[::-1])
  dicts = [json.loads(run_record.to_json(each)) for each in made]
  more = [each | {'new_key': None} for each in dicts]
  assert found == markdown.digest_note(more)
  changed = records.changed(made[0], 'alpha', value=0.71)
  assert found != markdown.digest_note([changed, made[1]])
  assert found != markdown.digest_note(made[:1])


_NAME = 'bulletins_ende: draft/checkpoint_4 for target/checkpoint_2, bfloat16'
_MEASURED = 'c', 'tokens_per_target_call', 'speedup'


class TestAlphas:

  def test_one_for_all_gammas(self):
    swept = [records.measured(gamma) for gamma in (1, 3)]
    plain = dataclasses.replace(records.measured(), alpha=None, drafter=None)
    other = records.changed(records.measured(alpha=0.6), 'target', name='b/2')
    found = points.alphas([plain, *swept, other])
    assert [(name, alpha.value) for name, _, alpha in found] == [
        (_NAME, 0.7), (_NAME.replace('target/checkpoint_2', 'b/2'), 0.6)
    ]  # fmt: skip


class TestFromRecords:

  def test_values(self):
    record = records.measured(3, 1.0, speedup_ci95=None)
    assert points.from_records([record]) == [(_NAME, 0.7, record)]

  @pytest.mark.parametrize(
      ('key', 'value'),
      [
          *((key, None) for key in ('drafter', 'gamma', 'alpha', *_MEASURED)),
          *((key, float('nan')) for key in _MEASURED),
      ],
  )
  def test_incomplete_records_are_left_out(self, key, value):
    complete = records.measured()
    incomplete = dataclasses.replace(complete, **{key: value})
    (point,) = points.from_records([complete, incomplete])
    assert point.run is complete
