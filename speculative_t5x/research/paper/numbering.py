# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the gamma of each mark beside it, nearer to it than to other marks.

Marks that overlap share one number, which lists their gammas. The number stands
to the right of its marks, or to the left, above or below if it overlaps less
there. If none of these places is free, the number stands farther away, and a
line connects it to its marks.

adjustText does not do this. It pushes labels apart by forces, without a rule
that a label be nearest to its own mark, and in crowded figures it leaves labels
on top of each other. The same marks always give the same picture.

Legend: gamma (draft tokens per target call).
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses

from matplotlib import axes as axes_lib
from matplotlib import transforms
import numpy as np

from speculative_t5x.research import figure_style

_GAP = 1.5  # points between marks and their number
_ROOM = 1.2 * _GAP  # least distance between a number and other marks
_LINES = (5, 10, 15, 20, 30)  # points between marks and a number with a line
_LINE_STEPS = 50  # points of a line that are checked for crossings
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
_CORNERS = ((1, 1), (-1, 1), (1, -1), (-1, -1))


@dataclasses.dataclass(frozen=True)
class Mark:
  """A mark in data coordinates, and its gamma."""

  x: float
  y: float
  gamma: int


@dataclasses.dataclass
class _Group:
  """Marks that overlap, and their boxes in pixels."""

  gammas: set[int]
  boxes: list[transforms.Bbox]

  @property
  def box(self) -> transforms.Bbox:
    return transforms.Bbox.union(self.boxes)


def listed(gammas: Iterable[int]) -> str:
  """Returns a list of gammas, such as "2, 4" or "1–3, 5"."""
  runs = []
  for gamma in sorted(gammas):
    if runs and gamma == runs[-1][-1] + 1:
      runs[-1].append(gamma)
    else:
      runs.append([gamma])
  return ', '.join(map(_run_text, runs))


def _run_text(run: Sequence[int]) -> str:
  if len(run) > 2:
    return f'{run[0]}–{run[-1]}'
  return ', '.join(map(str, run))


@dataclasses.dataclass(frozen=True)
class _Place:
  """A possible place of a number, in pixels."""

  box: transforms.Bbox
  has_line: bool


@dataclasses.dataclass(frozen=True)
class _Surroundings:
  """What the number of a group must not cover, in pixels.

  Attributes:
    inside: the axes, which the number should not leave.
    own: the marks of the group.
    others: [n, 4] float, all other marks; see `_extents`.
    texts: [n, 4] float, other numbers and texts; see `_extents`.
    room: least distance between the number and other marks.
  """

  inside: transforms.Bbox
  own: transforms.Bbox
  others: np.ndarray
  texts: np.ndarray
  room: float

  def cost(self, place: _Place) -> tuple[bool, float]:
    """Returns whether a place is ambiguous, and the area that it covers.

    A place is ambiguous if the number is near other marks, or if its line
    crosses something.
    """
    is_near = np.any(_distances(place.box, self.others) < self.room)
    is_crossed = place.has_line and self._is_crossed(_center(place.box))
    return is_near or is_crossed, self._covered(place.box)

  def _is_crossed(self, end: np.ndarray) -> bool:
    line = np.linspace(_center(self.own), end, _LINE_STEPS)[:, np.newaxis]
    boxes = np.concatenate([self.others, self.texts])
    within = (boxes[:, :2] < line) & (line < boxes[:, 2:])
    return np.any(np.all(within, axis=-1))

  def _covered(self, box: transforms.Bbox) -> float:
    own, inside = _extents([self.own]), _extents([self.inside])
    taken = np.concatenate([own, self.others, self.texts])
    outside = box.width * box.height - np.sum(_shared(box, inside))
    return outside + np.sum(_shared(box, taken))


def number(axes: axes_lib.Axes, marks: Iterable[Mark]) -> None:
  """Writes the numbers of marks into a figure that is otherwise finished.

  Args:
    axes: that the marks are drawn in. Texts that are written there stay clear.
    marks: to be numbered.
  """
  axes.figure.draw_without_rendering()  # moves the axes to their final place
  axes.figure.set_layout_engine('none')  # where the numbers are to stay right
  texts = [_spaced(axes, text.get_window_extent()) for text in axes.texts]
  groups = _groups(axes, [(mark, _box(axes, mark)) for mark in marks])
  places = [list(_places(axes, group)) for group in groups]
  chosen = {}
  # The first round tries places beside the marks. The later rounds try all, and
  # a number avoids those of later groups too.
  for num_places in (len(_SIDES), None, None):
    for i, group in enumerate(groups):
      numbers = [_spaced(axes, p.box) for j, p in chosen.items() if j != i]
      around = _Surroundings(
          axes.bbox,
          group.box,
          _extents(x for g in groups if g is not group for x in g.boxes),
          _extents(texts + numbers),
          _pixels(axes, _ROOM),
      )
      chosen[i] = min(places[i][:num_places], key=around.cost)
  for i, group in enumerate(groups):
    _write(axes, group, chosen[i])


def _box(axes: axes_lib.Axes, mark: Mark) -> transforms.Bbox:
  x, y = axes.transData.transform((mark.x, mark.y))
  half = _pixels(axes, figure_style.MARK_POINTS / 2)
  return transforms.Bbox.from_extents(x - half, y - half, x + half, y + half)


def _pixels(axes: axes_lib.Axes, points: float) -> float:
  return points * axes.figure.dpi / 72


def _groups(
    axes: axes_lib.Axes, boxes: Iterable[tuple[Mark, transforms.Bbox]]
) -> list[_Group]:
  """Returns groups of marks, each so close to the next that numbers overlap."""
  text_height = _pixels(axes, figure_style.SMALL)
  groups = []
  for mark, box in sorted(boxes, key=lambda pair: (pair[1].y0, pair[1].x0)):
    for group in groups:
      top = group.boxes[-1]
      beside = abs(box.x0 - top.x0) < box.width / 2
      if beside and box.y0 - top.y0 < text_height:
        group.gammas.add(mark.gamma)
        group.boxes.append(box)
        break
    else:
      groups.append(_Group({mark.gamma}, [box]))
  return groups


def _places(axes: axes_lib.Axes, group: _Group) -> Iterator[_Place]:
  """Yields places beside the marks, then farther away, the preferred first."""
  measured = figure_style.note(axes, listed(group.gammas), (0, 0), (0, 0))
  text = measured.get_window_extent()
  measured.remove()
  marks = group.box
  gaps = [(_GAP, _SIDES), *((line, _SIDES + _CORNERS) for line in _LINES)]
  for gap, directions in gaps:
    away = (marks.size + text.size) / 2 + _pixels(axes, gap)
    for direction in directions:
      low = _center(marks) + away * direction - text.size / 2
      box = transforms.Bbox([low, low + text.size])
      yield _Place(box, has_line=gap > _GAP)


def _spaced(axes: axes_lib.Axes, text: transforms.Bbox) -> transforms.Bbox:
  """Returns the box of a text with room on its left and right."""
  return text.padded(_pixels(axes, _GAP), 0)


def _center(box: transforms.Bbox) -> np.ndarray:
  return (box.min + box.max) / 2


def _extents(boxes: Iterable[transforms.Bbox]) -> np.ndarray:
  """Returns the left, bottom, right and top of each box, [n, 4] float."""
  return np.reshape([box.extents for box in boxes], (-1, 4))


def _distances(box: transforms.Bbox, others: np.ndarray) -> np.ndarray:
  apart = np.maximum(box.min - others[:, 2:], others[:, :2] - box.max)
  return np.linalg.norm(np.maximum(apart, 0), axis=1)


def _shared(box: transforms.Bbox, others: np.ndarray) -> np.ndarray:
  low = np.maximum(box.min, others[:, :2])
  high = np.minimum(box.max, others[:, 2:])
  return np.prod(np.maximum(high - low, 0), axis=1)


def _write(axes: axes_lib.Axes, group: _Group, place: _Place) -> None:
  start = _center(group.box)
  pixels = _center(place.box) - start
  line = {
      'arrowstyle': '-',
      'linewidth': 0.4,
      'shrinkA': 0,
      'shrinkB': figure_style.MARK_POINTS / 2,
  }
  figure_style.note(
      axes,
      listed(group.gammas),
      axes.transData.inverted().transform(start),
      pixels * 72 / axes.figure.dpi,
      ha='center',
      va='center',
      arrowprops=line if place.has_line else None,
  )
