# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoded sentence as a page and as a picture: Figure 1 of the paper.

Of Leviathan et al. (2023), arXiv:2211.17192v2. One line a target call; what
became of a token is told by its colour and by its form, so that it is seen in
grey too. `tracing.render` is the form for a terminal.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import enum
import html
import itertools
import string

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import font_manager
from matplotlib import lines
from matplotlib import patches
from matplotlib import textpath

from speculative_t5x import tracing
from speculative_t5x.paper import style

_SPACE = '▁'  # what SentencePiece writes for a space


class _Fate(enum.StrEnum):
  KEPT = 'kept'
  REJECTED = 'rejected'
  DRAWN = 'drawn'


_MEANING = {
    _Fate.KEPT: 'guessed and kept',
    _Fate.REJECTED: 'guessed and rejected',
    _Fate.DRAWN: 'drawn by the target',
}


@dataclasses.dataclass(frozen=True)
class _Mark:
  """A token as it is shown.

  Attributes:
    text: what is marked. A space only where the token is nothing else.
    is_spaced: whether a space stands before it.
    fate: None for text that is no token.
  """

  text: str
  is_spaced: bool = False
  fate: _Fate | None = None

  @property
  def begins_word(self) -> bool:
    return self.is_spaced or self.text.isspace()


def _marks(block: tracing.Block, id_to_piece) -> list[_Mark]:
  fates = [(_Fate.KEPT, token) for token in block.accepted]
  fates += [(_Fate.REJECTED, block.rejected), (_Fate.DRAWN, block.drawn)]
  return [
      _mark(id_to_piece(token), fate)
      for fate, token in fates
      if token is not None
  ]


def _mark(piece: str, fate: _Fate) -> _Mark:
  text = piece.replace(_SPACE, ' ')
  is_spaced = text.startswith(' ') and text != ' '
  return _Mark(text[1:] if is_spaced else text, is_spaced, fate)


def _counts(blocks: Sequence[tracing.Block]) -> str:
  num_tokens = sum(
      len(block.accepted) + (block.drawn is not None) for block in blocks
  )
  return (
      f'{_count(num_tokens, "token")} in {_count(len(blocks), "target call")},'
      ' one line a call'
  )


def _count(number: int, noun: str) -> str:
  return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


_PAGE = string.Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
:root {
  --page: #fff; --text: #222; --faint: #666;
  --kept: #145a32; --kept-back: #dcf3e4;
  --rejected: #97201a; --rejected-back: #fce4e1;
  --drawn: #103f91; --drawn-back: #d5e3ff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16181c; --text: #e4e4e4; --faint: #a0a0a0;
    --kept: #a5e6bf; --kept-back: #173a28;
    --rejected: #ffb3aa; --rejected-back: #4b1d1a;
    --drawn: #bcd2ff; --drawn-back: #1e3766;
  }
}
body {
  margin: 2rem auto; max-width: 46rem; padding: 0 1rem;
  background: var(--page); color: var(--text);
  font: 1rem/1.9 system-ui, sans-serif;
}
h1 { font-size: 1.1rem; line-height: 1.4; }
p { margin: 0.5rem 0; }
li { padding-left: 0.4rem; white-space: pre-wrap; overflow-wrap: anywhere; }
li::marker { color: var(--faint); font-size: 0.8rem; }
.kept, .rejected, .drawn {
  border-radius: 0.2rem; margin: 0 1px; padding: 0.1rem 0.15rem;
  text-decoration-thickness: 0.1em;
}
.kept { color: var(--kept); background: var(--kept-back); }
.rejected { color: var(--rejected); background: var(--rejected-back); }
.drawn {
  color: var(--drawn); background: var(--drawn-back); font-weight: bold;
  text-underline-offset: 0.2em;
}
</style>
</head>
<body>
<h1>$title</h1>
<p class="legend">$legend</p>
<p class="counts">$counts</p>
<ol>
$lines
</ol>
</body>
</html>
""")
_TAGS = {_Fate.KEPT: 'span', _Fate.REJECTED: 'del', _Fate.DRAWN: 'ins'}


def page(
    blocks: Sequence[tracing.Block],
    id_to_piece: Callable[[int], str],
    sentence: str | None = None,
) -> str:
  """A whole HTML page, which loads nothing and runs nothing.

  Args:
    blocks: of one output, as `tracing.trace` returns them.
    id_to_piece: SentencePiece's, or any other; its text is escaped.
    sentence: the input, for the title.
  Returns:
    The page, to be written as UTF-8.
  """
  items = (
      ''.join(_tag(mark) for mark in _marks(block, id_to_piece))
      for block in blocks
  )
  return _PAGE.substitute(
      title=html.escape(sentence or 'A decoded sentence'),
      legend=', '.join(_tag(mark) for mark in _legend()),
      counts=_counts(blocks),
      lines='\n'.join(f'<li>{item}</li>' for item in items),
  )


def _legend() -> list[_Mark]:
  return [_Mark(meaning, fate=fate) for fate, meaning in _MEANING.items()]


def _tag(mark: _Mark) -> str:
  space, tag = ' ' if mark.is_spaced else '', _TAGS[mark.fate]
  text = html.escape(mark.text)
  return f'{space}<{tag} class="{mark.fate}">{text}</{tag}>'


# Text and ground, far enough apart to be read in grey.
_COLOURS = {
    None: ('#444444', None),
    _Fate.KEPT: ('#145a32', '#dcf3e4'),
    _Fate.REJECTED: ('#97201a', '#fce4e1'),
    _Fate.DRAWN: ('#103f91', '#c9dbff'),
}
# In points.
_WIDTH = style.PAGE_IN * 72
_SIZE = 8.0
_LEADING = 13.0
_SPACE_WIDTH = 0.32 * _SIZE
_GAP = 2.2  # after a token, so that grounds do not touch
_PADDING = 0.6  # of a token's ground on either side
_MARGIN = 6.0
_INDENT = 18.0  # room for the number of the call
_BELOW, _ABOVE = 0.3 * _SIZE, 0.92 * _SIZE  # of a token's ground


@dataclasses.dataclass(frozen=True)
class _Placed:
  """A mark on the sheet; x from the left, y down to the baseline, in points."""

  mark: _Mark
  x: float
  y: float


def draw(
    blocks: Sequence[tracing.Block],
    id_to_piece: Callable[[int], str],
    sentence: str | None = None,
) -> figure_lib.Figure:
  """A figure for print, as wide as a page and as tall as the text needs.

  Args:
    blocks: of one output, as `tracing.trace` returns them.
    id_to_piece: SentencePiece's, or any other.
    sentence: the input, for the first line.
  """
  with style.applied():
    sheet = _Sheet()
    if sentence is not None:
      sheet.add_text(f'Input: {sentence}')
    sheet.add_line([dataclasses.replace(m, is_spaced=True) for m in _legend()])
    sheet.add_text(_counts(blocks))
    sheet.skip()
    for number, block in enumerate(blocks, start=1):
      sheet.add_line(_marks(block, id_to_piece), f'{number}')
    return _paint(sheet)


class _Sheet:
  """Sets marks in lines, and breaks lines that are too long between words."""

  def __init__(self):
    self.placed: list[_Placed] = []
    self.labels: list[tuple[str, float]] = []  # and their y
    self.height = _MARGIN
    self._x = _INDENT

  def add_text(self, text: str) -> None:
    self.add_line([_Mark(word, True) for word in text.split()])

  def add_line(self, marks: Iterable[_Mark], label: str = '') -> None:
    self._break_line()
    self.labels.append((label, self.height))
    for word in _words(marks):
      self._add_word(word)

  def skip(self) -> None:
    self.height += 0.4 * _LEADING

  def _add_word(self, word: list[_Mark]) -> None:
    if self._x > _INDENT and not self._has_room(sum(map(_advance, word))):
      self._break_line()
    if word[0].is_spaced:
      self._x += _SPACE_WIDTH
    for mark in word:
      if not self._has_room(_advance(mark)):  # a word longer than a line
        self._break_line()
      self.placed.append(_Placed(mark, self._x, self.height))
      self._x += _advance(mark)

  def _has_room(self, width: float) -> bool:
    return self._x + _SPACE_WIDTH + width <= _WIDTH - _MARGIN

  def _break_line(self) -> None:
    self._x = _INDENT
    self.height += _LEADING


def _words(marks: Iterable[_Mark]) -> list[list[_Mark]]:
  """[a, b, c, d] with spaces before a and c -> [[a, b], [c, d]]."""
  marks = list(marks)
  starts = itertools.accumulate(mark.begins_word for mark in marks)
  grouped = itertools.groupby(zip(starts, marks), key=lambda pair: pair[0])
  return [[mark for _, mark in group] for _, group in grouped]


def _font(fate: _Fate | None) -> font_manager.FontProperties:
  weight = 'bold' if fate == _Fate.DRAWN else 'normal'
  return font_manager.FontProperties(size=_SIZE, weight=weight)


def _advance(mark: _Mark) -> float:
  return _text_width(mark) + (_GAP if mark.fate else 0)


def _text_width(mark: _Mark) -> float:
  if mark.text.isspace():
    return len(mark.text) * _SPACE_WIDTH
  width, _, _ = textpath.text_to_path.get_text_width_height_descent(
      mark.text, _font(mark.fate), ismath=False
  )
  return width


def _paint(sheet: _Sheet) -> figure_lib.Figure:
  height = sheet.height + _LEADING
  figure = figure_lib.Figure((_WIDTH / 72, height / 72))
  axes = figure.add_axes((0, 0, 1, 1), xlim=(0, _WIDTH), ylim=(height, 0))
  axes.set_axis_off()
  for label, y in sheet.labels:
    axes.text(
        _INDENT - 6, y, label, size=0.75 * _SIZE, color='#666666', ha='right'
    )
  for placed in sheet.placed:
    _paint_mark(axes, placed)
  return figure


def _paint_mark(axes: axes_lib.Axes, placed: _Placed) -> None:
  fate, x, y = placed.mark.fate, placed.x, placed.y
  colour, ground = _COLOURS[fate]
  axes.text(
      x, y, placed.mark.text, font=_font(fate), color=colour, parse_math=False
  )
  if ground is None:
    return
  width = _text_width(placed.mark)
  axes.add_patch(
      patches.Rectangle(
          (x - _PADDING, y - _ABOVE),
          width + 2 * _PADDING,
          _ABOVE + _BELOW,
          color=ground,
          linewidth=0,
      )
  )
  heights = {_Fate.REJECTED: y - 0.32 * _SIZE, _Fate.DRAWN: y + 0.16 * _SIZE}
  if fate in heights:
    ends, line_y = (x, x + width), heights[fate]
    axes.add_line(
        lines.Line2D(ends, (line_y, line_y), color=colour, linewidth=0.8)
    )
