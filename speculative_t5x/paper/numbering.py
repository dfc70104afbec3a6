# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the gamma of each mark beside it, nearer to it than to other marks.

Marks that lie together share a number, which lists their gammas. It stands
right of its marks, or left, above or below where that overlaps less. Where a
crowd leaves no such place it stands farther off, and a line leads to its marks.

Legend: gamma (guesses a target call).
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses

from matplotlib import axes as axes_lib
from matplotlib import transforms
import numpy as np

from speculative_t5x.paper import style

_GAP = 1.5  # points, from marks to their number
_ROOM = 1.2 * _GAP  # at least, from a number to marks that are not its own
_LINES = (5, 10, 15, 20, 30)  # points, from marks to a number with a line
_LINE_STEPS = 50  # at which a line is looked at
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
_CORNERS = ((1, 1), (-1, 1), (1, -1), (-1, -1))


@dataclasses.dataclass(frozen=True)
class Mark:
  """A mark in data coordinates, and the gamma that belongs to it."""

  x: float
  y: float
  gamma: int


@dataclasses.dataclass
class _Group:
  """Marks that lie together, and their boxes in pixels."""

  gammas: set[int]
  boxes: list[transforms.Bbox]

  @property
  def box(self) -> transforms.Bbox:
    return transforms.Bbox.union(self.boxes)

  @property
  def text(self) -> str:
    """The gammas as pages are listed: "2, 4" or "1–3, 5"."""
    runs = []
    for gamma in sorted(self.gammas):
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
  """Where a number may stand, in pixels."""

  box: transforms.Bbox
  has_line: bool


@dataclasses.dataclass(frozen=True)
class _Surroundings:
  """What the number of a group keeps clear of, in pixels.

  Attributes:
    inside: the axes.
    own: the marks of the group.
    others: all other marks, [n, 4] as of `_extents`.
    texts: other numbers, and what else is written, likewise.
    room: at least, from the number to other marks.
  """

  inside: transforms.Bbox
  own: transforms.Bbox
  others: np.ndarray
  texts: np.ndarray
  room: float

  def cost(self, place: _Place) -> tuple[bool, float]:
    """Whether it may be read as of other marks, and the area that it covers."""
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
  """Numbers marks whose figure is otherwise finished.

  Args:
    axes: that hold the marks. What is written there already is kept clear of.
    marks: whose limits the axes have.
  """
  axes.figure.draw_without_rendering()  # gives the axes their final place
  texts = [_spaced(axes, text.get_window_extent()) for text in axes.texts]
  groups = _groups(axes, [(mark, _box(axes, mark)) for mark in marks])
  places = [list(_places(axes, group)) for group in groups]
  chosen = {}
  # At first beside the marks. Then a number sees also those that came after it.
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
  half = _pixels(axes, style.MARK_POINTS / 2)
  return transforms.Bbox.from_extents(x - half, y - half, x + half, y + half)


def _pixels(axes: axes_lib.Axes, points: float) -> float:
  return points * axes.figure.dpi / 72


def _groups(
    axes: axes_lib.Axes, boxes: Iterable[tuple[Mark, transforms.Bbox]]
) -> list[_Group]:
  """Chains of marks, from below, of which each hides the next one's number."""
  text_height = _pixels(axes, style.SMALL)
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
  """Beside the marks, then farther off: the first is the best of equals."""
  measured = style.note(axes, group.text, (0, 0), (0, 0))
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
  """Keeps it from running into the next one."""
  return text.padded(_pixels(axes, _GAP), 0)


def _center(box: transforms.Bbox) -> np.ndarray:
  return (box.min + box.max) / 2


def _extents(boxes: Iterable[transforms.Bbox]) -> np.ndarray:
  """Left, bottom, right and top of each, [n, 4]."""
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
      'shrinkB': style.MARK_POINTS / 2,
  }
  style.note(
      axes,
      group.text,
      axes.transData.inverted().transform(start),
      pixels * 72 / axes.figure.dpi,
      ha='center',
      va='center',
      arrowprops=line if place.has_line else None,
  )
