# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Frames of the training split, composed of openings and endings."""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import random
import re
from typing import Any

from scripts.bulletins import data
from scripts.bulletins import skeletons

_ROLES = ('FACT', 'OTHER', 'REASON', 'SEQUEL')
_ANY = ' '.join(_ROLES)
_TWO_SENTENCES = 0.5
# A topic has at least two sources.
_MAX_SOURCES = 2
_STATEMENT = re.compile(r'\{(?:FACT|OTHER|REASON|SEQUEL)\}')
_TOKEN = re.compile(r'\{[^}]*\}|\w+|[,.]')

Frames = Mapping[str, Sequence[skeletons.Frame]]
Pieces = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True)
class Piece:
  """An opening or an ending of a sentence (see `data/training_frames.toml`).

  Attributes:
    en: its English words, with {X} where it holds a statement of its own.
    de: its German words.
    order: of an opening: the word order of the sentence's statement.
    core: what the sentence's statement may be.
    x: what X may be.
    about_future: whether the fact has to lie in the future.
    later: of an opening: whether it begins only a second sentence.
    after: of an ending: the word order that it needs before it, or ''.
  """

  en: str
  de: str
  order: str = ''
  core: str = _ANY
  x: str = _ANY
  about_future: bool = False
  later: bool = False
  after: str = ''

  @property
  def allowed(self) -> list[set[str]]:
    """What X may be, or nothing without an X."""
    return [set(self.x.split())] if '{X}' in self.en else []


class Composer:
  """Draws frames in which no frame of the test split occurs."""

  def __init__(self, pieces: Pieces, frames: Frames):
    """Reads the pieces.

    Args:
      pieces: attributes of the `openings` and `endings`.
      frames: those of each split, as `skeletons.read_frames` returns them.
    """
    self._openings = [Piece(**piece) for piece in pieces['openings']]
    self._endings = [Piece(**piece) for piece in pieces['endings']]
    self._forbidden = _forbidden(frames)

  @classmethod
  def of_data(cls, frames: Frames) -> 'Composer':
    """Returns the composer of the pieces in `data/training_frames.toml`."""
    return cls(data.read('training_frames'), frames)

  def draw(self, rng: random.Random) -> skeletons.Frame:
    """Draws a frame of one or two sentences."""
    while (frame := self._attempt(rng)) is None or any(
      _occurs(pattern, frame.en) for pattern in self._forbidden
    ):
      pass
    return frame

  def _attempt(self, rng: random.Random) -> skeletons.Frame | None:
    """Draws a frame, or None if the pieces drawn do not fit each other."""
    sentences = [self._sentence(rng, later=False)]
    if rng.random() < _TWO_SENTENCES:
      sentences.append(self._sentence(rng, later=True))
    allowed = [
      roles
      for opening, ending in sentences
      for roles in (
        *opening.allowed,
        set(opening.core.split()) & set(ending.core.split()),
        *ending.allowed,
      )
    ]
    if len(allowed) > len(_ROLES) or not _fits(sentences):
      return None
    roles = rng.sample(_ROLES, len(allowed))
    if any(role not in fit for role, fit in zip(roles, allowed, strict=True)):
      return None
    en, de = _texts(sentences, roles)
    if en.count('{source') > _MAX_SOURCES or not _is_complete(en):
      return None
    future = any(opening.about_future for opening, _ in sentences)
    return skeletons.Frame(en, en, de, about_future=future)

  def _sentence(self, rng, *, later) -> tuple[Piece, Piece]:
    openings = [o for o in self._openings if later or not o.later]
    return rng.choice(openings), rng.choice(self._endings)


def _forbidden(frames: Frames) -> list[tuple[bool, list[str]]]:
  """Returns what no training frame may contain: the frames of the test split.

  Whatever its statements are, a test frame may not occur. Only where training
  frames have joined other statements in the same way from the start (as
  'SEQUEL because REASON' does for 'SEQUEL because FACT'), the statements are
  told apart.

  Returns:
    For each test frame whether its statements are told apart, and its tokens.
  """
  found = []
  for frame in frames['test']:
    labelled = any(
      _occurs((False, _tokens(frame.en, labelled=False)), other.en)
      for other in frames['train']
    )
    found.append((labelled, _tokens(frame.en, labelled=labelled)))
  return found


def _occurs(pattern: tuple[bool, list[str]], text: str) -> bool:
  labelled, part = pattern
  tokens = _tokens(text, labelled=labelled)
  starts = range(len(tokens) - len(part) + 1)
  return any(tokens[i : i + len(part)] == part for i in starts)


def _tokens(text: str, *, labelled: bool) -> list[str]:
  """Splits a frame into words, without the full stop at its end."""
  text = re.sub(r'\{source\d*', '{source', text)
  if not labelled:
    text = _STATEMENT.sub('{S}', text)
  return _TOKEN.findall(text.removesuffix('.'))


def _fits(sentences: Sequence[tuple[Piece, Piece]]) -> bool:
  """Whether endings follow their word order, and no opening is repeated."""
  openings = [opening for opening, _ in sentences if opening.en]
  return len(set(openings)) == len(openings) and all(
    ending.after in ('', opening.order) for opening, ending in sentences
  )


def _is_complete(en: str) -> bool:
  """Whether the frame has the fact that OTHER and WHEN belong to."""
  return '{FACT}' in en or not ('{OTHER}' in en or '{WHEN}' in en)


def _texts(sentences, roles: Sequence[str]) -> tuple[str, str]:
  """Puts statements into the pieces of all sentences, in both languages."""
  en, de = [], []
  following = iter(roles)
  for opening, ending in sentences:
    before, core, after = (
      next(following) if wanted else ''
      for wanted in (opening.allowed, True, ending.allowed)
    )
    en.append(
      f'^{_with(opening.en, before)} {{{core}}} {_with(ending.en, after)}.'
    )
    de.append(
      f'^{_with(opening.de, before)} {{{core}.{opening.order}}}'
      f' {_with(ending.de, after)}.'
    )
  return _numbered(' '.join(en)), _numbered(' '.join(de))


def _with(text: str, role: str) -> str:
  return text.replace('{X', '{' + role)


def _numbered(text: str) -> str:
  """Gives every source after the first one a number: {source2}."""
  numbers = itertools.count(1)

  def put(_: re.Match) -> str:
    number = next(numbers)
    return '{source' + (str(number) if number > 1 else '')

  return re.sub(r'\{source', put, text)
