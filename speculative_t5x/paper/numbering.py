# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the gamma of each mark beside it, off other marks and their numbers.

Marks that lie together share a number, from the least to the most of them. Each
number stands right of its marks, or left, above or below where that overlaps
less.

Legend: gamma (guesses a target call).
"""

from collections.abc import Iterable, Sequence
import dataclasses

from matplotlib import axes as axes_lib
from matplotlib import text as text_lib
from matplotlib import transforms

from speculative_t5x.paper import style

_GAP = 1.5  # points, from marks to their number
_SIDES = (
    # the side's place on the marks' box, the offset, the text's alignment
    ((1.0, 0.5), (_GAP, 0), {'ha': 'left', 'va': 'center'}),
    ((0.0, 0.5), (-_GAP, 0), {'ha': 'right', 'va': 'center'}),
    ((0.5, 1.0), (0, _GAP), {'ha': 'center', 'va': 'bottom'}),
    ((0.5, 0.0), (0, -_GAP), {'ha': 'center', 'va': 'top'}),
)


@dataclasses.dataclass(frozen=True)
class Mark:
  """A mark in data coordinates, and the gamma that belongs to it."""

  x: float
  y: float
  gamma: int


@dataclasses.dataclass
class _Group:
  """Marks that lie together, and the box around them in pixels."""

  gammas: set[int]
  box: transforms.Bbox

  @property
  def text(self) -> str:
    low, high = min(self.gammas), max(self.gammas)
    return str(low) if low == high else f'{low}–{high}'


def number(axes: axes_lib.Axes, marks: Iterable[Mark]) -> None:
  """Numbers marks whose figure is otherwise finished.

  Args:
    axes: that hold the marks. What is written there already is kept clear of.
    marks: whose limits the axes have.
  """
  axes.figure.draw_without_rendering()  # gives the axes their final place
  boxes = [(mark, _box(axes, mark)) for mark in marks]
  taken = [text.get_window_extent() for text in axes.texts]
  taken += [box for _, box in boxes]
  groups = _groups(axes, boxes)
  texts = {}
  # The second time a number sees also those that came after it.
  for i, group in 2 * list(enumerate(groups)):
    if i in texts:
      texts.pop(i).remove()
    others = [text.get_window_extent() for text in texts.values()]
    texts[i] = _place(axes, group, taken + others)


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
  groups, tops = [], []
  for mark, box in sorted(boxes, key=lambda pair: (pair[1].y0, pair[1].x0)):
    for i, top in enumerate(tops):
      beside = abs(box.x0 - top.x0) < box.width / 2
      if beside and box.y0 - top.y0 < text_height:
        groups[i].gammas.add(mark.gamma)
        groups[i].box = transforms.Bbox.union([groups[i].box, box])
        tops[i] = box
        break
    else:
      groups.append(_Group({mark.gamma}, box))
      tops.append(box)
  return groups


def _place(
    axes: axes_lib.Axes, group: _Group, taken: Sequence[transforms.Bbox]
) -> text_lib.Annotation:
  """Writes the number on the side where it overlaps least."""
  to_data = axes.transData.inverted().transform
  box = group.box
  choices = [
      style.note(
          axes,
          group.text,
          to_data((box.x0 + box.width * across, box.y0 + box.height * up)),
          offset,
          **alignment,
      )
      for (across, up), offset, alignment in _SIDES
  ]
  cost = lambda text: _cost(text.get_window_extent(), axes.bbox, taken)
  best = min(choices, key=cost)
  for text in choices:
    if text is not best:
      text.remove()
  return best


def _cost(
    box: transforms.Bbox,
    inside: transforms.Bbox,
    taken: Sequence[transforms.Bbox],
) -> float:
  """Square pixels of a box that are taken, or outside of the axes."""
  covered = sum(_shared(box, other) for other in taken)
  return covered + box.width * box.height - _shared(box, inside)


def _shared(box: transforms.Bbox, other: transforms.Bbox) -> float:
  both = transforms.Bbox.intersection(box, other)
  return 0.0 if both is None else both.width * both.height
