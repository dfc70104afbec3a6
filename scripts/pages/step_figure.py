# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The picture of one step of speculative decoding in `docs/concepts.md`."""

import pathlib
from xml.sax import saxutils

PATH = pathlib.Path(__file__).parents[2] / 'docs/step.svg'

_LEFT, _BOX, _GAP, _ROW = 264, 74, 8, 66  # pixels
_WIDTH, _HEIGHT = 850, 410
_PREFIX = '#eeeeee', '#333333', 'none'
_DRAFT = '#fff4d6', '#6b4e00', 'none'
_SCORES = '#e8e8f8', '#2d2d6e', 'none'
_ACCEPTED = '#dcf3e4', '#145a32', 'none'
_REJECTED = '#fce4e1', '#97201a', 'line-through'
_DROPPED = '#f6f6f6', '#999999', 'line-through'
_TARGET = '#c9dbff', '#103f91', 'underline'

# Per row: what happens, a remark, and boxes with their column and look.
_ROWS = (
    ('Prefix', 'what is written so far', (
        (0, 'The', _PREFIX), (1, 'old', _PREFIX))),
    ('1. Draft', 'γ = 4 cheap steps: xᵢ ~ qᵢ', (
        (2, 'house', _DRAFT), (3, 'in', _DRAFT),
        (4, 'a', _DRAFT), (5, 'town', _DRAFT))),
    ('2. Verify', 'one target call: all γ + 1 pᵢ', (
        (2, 'p₁', _SCORES), (3, 'p₂', _SCORES), (4, 'p₃', _SCORES),
        (5, 'p₄', _SCORES), (6, 'p₅', _SCORES))),
    ('3. Accept', 'from the left, while uᵢ qᵢ < pᵢ', (
        (2, 'house', _ACCEPTED), (3, 'in', _ACCEPTED),
        (4, 'a', _REJECTED), (5, 'town', _DROPPED))),
    ('4. One more token', 'rejected: from max(0, p₃ − q₃)', (
        (0, 'The', _PREFIX), (1, 'old', _PREFIX), (2, 'house', _ACCEPTED),
        (3, 'in', _ACCEPTED), (4, 'the', _TARGET))),
    ('   or, all accepted', 'the bonus token, from p₅', (
        (0, 'The', _PREFIX), (1, 'old', _PREFIX), (2, 'house', _ACCEPTED),
        (3, 'in', _ACCEPTED), (4, 'a', _ACCEPTED), (5, 'town', _ACCEPTED),
        (6, 'near', _TARGET))),
)  # fmt: skip


def draw() -> str:
  """Return the picture as SVG."""
  shapes = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>']
  for number, (title, remark, boxes) in enumerate(_ROWS):
    y = 14 + number * _ROW
    shapes.append(_text(16, y + 18, title, '#000000', weight='bold'))
    shapes.append(_text(16, y + 37, remark, '#444444'))
    shapes += [_box(column, y, *box) for column, *box in boxes]
  return (
      '<svg xmlns="http://www.w3.org/2000/svg"'
      f' viewBox="0 0 {_WIDTH} {_HEIGHT}"'
      ' font-family="sans-serif" font-size="15" role="img">\n'
      '<title>One step of speculative decoding</title>\n'
      + '\n'.join(shapes)
      + '\n</svg>\n'
  )


def _box(column: int, y: int, word: str, look: tuple[str, str, str]) -> str:
  fill, color, decoration = look
  x = _LEFT + column * (_BOX + _GAP)
  return (
      f'<rect x="{x}" y="{y}" width="{_BOX}" height="42" rx="6" fill="{fill}"'
      f' stroke="{color}"/>'
      + _text(x + _BOX / 2, y + 27, word, color, 'middle', decoration)
  )


def _text(
    x: float, y: float, text: str, color: str, anchor: str = 'start',
    decoration: str = 'none', weight: str = 'normal',
) -> str:  # fmt: skip
  return (
      f'<text x="{x:g}" y="{y}" fill="{color}" text-anchor="{anchor}"'
      f' text-decoration="{decoration}" font-weight="{weight}">'
      f'{saxutils.escape(text)}</text>'
  )
