# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers stand beside their marks and off everything else."""

import itertools
import math

from matplotlib import figure as figure_lib
from matplotlib import text as text_lib
import numpy as np
import pytest

from speculative_t5x.research import figure_style
from speculative_t5x.research.paper import numbering


def _numbered(*marks, texts=()):
  """Axes of 0 to 100 points each way, a unit a point."""
  figure = figure_lib.Figure((3, 3))
  axes = figure.add_axes((0.2, 0.2, 100 / 216, 100 / 216))
  axes.set(xlim=(0, 100), ylim=(0, 100))
  for text, place in texts:
    figure_style.note(axes, text, place, (0, 0), va='center')
  numbering.number(axes, [numbering.Mark(*mark) for mark in marks])
  return axes


def _distances(text, marks):
  """From the text alone to each mark's box, in points."""
  text.get_window_extent()  # puts it where it belongs
  box = text_lib.Text.get_window_extent(text)  # without its line
  box = box.transformed(text.axes.transData.inverted())
  half = figure_style.MARK_POINTS / 2
  return [
      math.hypot(
          max(box.x0 - x - half, x - half - box.x1, 0),
          max(box.y0 - y - half, y - half - box.y1, 0),
      )
      for x, y, _ in marks
  ]


def _words(axes):
  return [text.get_text() for text in axes.texts]


def _box(text):
  """In data coordinates."""
  axes = text.axes
  return text.get_window_extent().transformed(axes.transData.inverted())


@pytest.mark.parametrize(
    'marks, words',
    [
        ([(50, 50, 3)], ['3']),
        ([(50, 50, 3), (50, 52, 7), (50, 54, 5)], ['3, 5, 7']),
        ([(50, 50, 3), (50, 52, 3)], ['3']),
        # A chain, though its ends are far apart, and one mark beyond it
        (
            [(50, y, y) for y in (20, 25, 30, 35, 60)],
            ['20, 25, 30, 35', '60'],
        ),
        # Two do not span others, and a range has all that it spans.
        ([(50, 50, 2), (50, 52, 4)], ['2, 4']),
        ([(50, 50, 2), (50, 52, 3)], ['2, 3']),
        ([(50, 50 + g, g) for g in (1, 2, 3, 5, 7)], ['1–3, 5, 7']),
        ([(50, 50, g) for g in (7, 1, 2, 4, 3, 8, 9)], ['1–4, 7–9']),
        # None hides another's number, be it beside or above.
        ([(50, 50, 3), (60, 50, 7)], ['3', '7']),
        ([(50, 50, 3), (50, 57, 7)], ['3', '7']),
        ([(50, 50, 3), (53, 52, 7)], ['3', '7']),
        ([], []),
    ],
)
def test_marks_that_lie_together_share_a_number(marks, words):
  assert _words(_numbered(*marks)) == words
  assert _words(_numbered(*reversed(marks))) == words


@pytest.mark.parametrize(
    'x, y, side',
    [(50, 50, 'right'), (97, 50, 'left'), (98, 94, 'left'), (2, 94, 'right')],
)
def test_to_the_right_if_there_is_room(x, y, side):
  (number,) = _numbered((x, y, 5)).texts
  box = _box(number)
  assert box.y0 < y < box.y1
  assert (box.x0 > x) == (side == 'right')
  assert 0 < box.x0 and box.x1 < 100
  # Off the mark, and near it
  assert 2 <= (box.x0 - x if side == 'right' else x - box.x1) < 5


def test_above_or_below_where_the_sides_are_taken():
  beside = [('long words', (55, 50)), ('long words', (14, 50))]
  *_, number = _numbered((50, 50, 5), texts=beside).texts
  assert _box(number).y0 >= 52
  over = [*beside, ('long words', (45, 56))]
  *_, number = _numbered((50, 50, 5), texts=over).texts
  assert _box(number).y1 <= 48


def test_crowds_do_not_overlap():
  """Marks near each other, whose numbers on the right would collide."""
  marks = [(30 + 8 * i, 50 + 4 * (i % 2), i) for i in range(6)]
  axes = _numbered(*marks)
  assert len(axes.texts) == 6
  boxes = [_box(text) for text in axes.texts]
  for one, other in itertools.combinations(boxes, 2):
    assert not one.overlaps(other)
  for box, (x, y, _) in itertools.product(boxes, marks):
    assert not (box.x0 < x < box.x1 and box.y0 < y < box.y1)


def _assert_no_doubt(axes, marks):
  """Every number is nearest to its own mark, or a line leads to it."""
  assert len(axes.texts) == len(marks)
  for number in axes.texts:
    own = [mark[2] for mark in marks].index(int(number.get_text()))
    distances = _distances(number, marks)
    if number.arrow_patch is None:
      nearest = distances.pop(own)
      assert nearest < 0.9 * min(distances)
    else:
      assert number.xy == pytest.approx(marks[own][:2])


def test_a_number_is_nearest_to_its_own_mark():
  """Right of the first is as near to the second, and left of it likewise."""
  marks = [(39.4, 50, 1), (50, 50, 2), (60.6, 50, 3)]
  axes = _numbered(*marks)
  _assert_no_doubt(axes, marks)
  assert all(number.arrow_patch is None for number in axes.texts)
  beside = [abs(_box(number).y0 - 47) < 2 for number in axes.texts]
  assert beside == [True, False, True]


def test_a_line_leads_out_of_a_crowd():
  around = [(44, 50), (56, 50), (50, 42.5), (50, 57.5)]
  around += [(x, y) for x in (44, 56) for y in (43, 57)]
  marks = [(50, 50, 0), *((x, y, i) for i, (x, y) in enumerate(around, 1))]
  axes = _numbered(*marks)
  _assert_no_doubt(axes, marks)
  number = axes.texts[_words(axes).index('0')]
  assert number.arrow_patch is not None
  assert min(_distances(number, marks)) > 1.5  # on no mark


@pytest.mark.parametrize('seed', range(4))
def test_random_crowds_leave_no_doubt(seed):
  random = np.random.default_rng(seed)
  spots = random.permutation(np.mgrid[20:80:7.0, 20:80:7.0].reshape(2, -1).T)
  marks = [(*map(float, spot), i) for i, spot in enumerate(spots[:25])]
  _assert_no_doubt(_numbered(*marks), marks)


def test_an_earlier_number_makes_room_for_a_later_one():
  """At the edge there is one side; the mark before it has two."""
  axes = _numbered((85, 50, 1), (97, 51, 2))
  first, second = map(_box, axes.texts)
  assert not first.overlaps(second)
