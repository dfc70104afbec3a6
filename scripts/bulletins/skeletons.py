# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A frame holding clauses, and how its slots are filled."""

from collections.abc import Callable, Mapping
import dataclasses
import random
import re

from scripts.bulletins import data
from scripts.bulletins import grammar
from scripts.bulletins import phrases
from scripts.bulletins import topics

_PART = re.compile(r'\{([A-Z]+\d?)(?:\.(\w+))?\}')
_SLOT = re.compile(r'\{([a-z_]+)(\d*)(?:\.(\w+))?\}')
_CHOICE = re.compile(r'\[([^|\]]*)\|([^\]]*)\]')
# Of two wordings the first is the more frequent, so that the likeliest
# translation is one and the same whatever else a model is unsure of.
_FIRST_WORDING = 0.75
# Keeps the slots of OTHER apart from those of FACT.
_OTHER_SUFFIX = '9'

# Phrases by kind and number of their slots.
Drawn = dict[tuple[str, str], phrases.Phrase]


@dataclasses.dataclass(frozen=True)
class Frame:
  """A sentence or two with places for statements (see `data/frames.toml`).

  Attributes:
    name: identifies the frame.
    en: the English words.
    de: the German words.
    about_future: whether its fact has to lie in the future.
    held_out: whether only the test split uses it.
  """

  name: str
  en: str
  de: str
  about_future: bool = False
  held_out: bool = False


@dataclasses.dataclass(frozen=True)
class Skeleton:
  """A named bulletin in both languages whose slots are still open."""

  name: str
  en: str
  de: str


def read_frames(name: str, make: Callable) -> dict[str, list]:
  """Returns what `make` makes of the frames in a data file, by split."""
  frames = {
    group: [make(**frame) for frame in listed]
    for group, listed in data.read(name).items()
  }
  training = frames['training']
  return {'train': training, 'validation': training, 'test': frames['test']}


def compose(
  frame: Frame,
  parts: Mapping[str, topics.Clause],
  *,
  tell_when: bool,
) -> Skeleton:
  """Puts clauses into a frame.

  `tell_when` is whether the fact keeps its adverbial of time, in a frame that
  does not put it first.
  """
  when = parts['FACT'].tense if 'FACT' in parts else ''
  adverbial = f'{{{when}}}' if when else ''

  def words(part: str, order: str | None) -> str:
    clause = parts[part]
    text = grammar.ordered(clause.de, order) if order else clause.en
    if part == 'OTHER':
      return topics.renumbered(text, _OTHER_SUFFIX)
    return text

  used = (parts[p].en for p in sorted(parts))
  return Skeleton(
    ' | '.join([frame.name, *used]),
    place(frame.en, words, adverbial, tell_when=tell_when),
    place(frame.de, words, adverbial, tell_when=tell_when),
  )


def place(
  pattern: str,
  words: Callable[[str, str | None], str],
  adverbial: str,
  *,
  tell_when: bool = True,
) -> str:
  """Puts statements into a pattern.

  `words` returns a statement by the name of its part and, in German, the word
  order. The adverbial goes where the pattern has WHEN, or else into the fact,
  if that is to tell when.
  """
  inner = adverbial if tell_when and '{WHEN}' not in pattern else ''

  def put(match: re.Match) -> str:
    part, order = match.groups()
    if part == 'WHEN':
      return adverbial
    when = inner if part == 'FACT' else ''
    return words(part, order).replace(topics.ADVERBIAL, when)

  return _PART.sub(put, pattern)


def draw(
  text: str, fillers: Mapping[str, phrases.Filler], rng: random.Random
) -> Drawn:
  """Draws a phrase for every slot of a text."""
  drawn: Drawn = {}
  for kind, index, _ in _SLOT.findall(text):
    if (kind, index) not in drawn:
      used = [p.de[''] for (k, _), p in drawn.items() if k == kind]
      drawn[kind, index] = _draw_other(fillers[kind], used, rng)
  return drawn


def fill(text: str, drawn: Drawn, language: str) -> str:
  """Returns a text in 'en' or 'de' with phrases in its slots."""

  def form(match: re.Match) -> str:
    forms = getattr(drawn[match[1], match[2]], language)
    # English forms, and datives, are spelled out only where they differ.
    if language == 'en' or match[3] == 'dat':
      return forms.get(match[3], forms[''])
    return forms[match[3] or '']

  return tidy(_SLOT.sub(form, text))


def _draw_other(filler, used, rng) -> phrases.Phrase:
  """Draws a phrase that the bulletin does not have yet."""
  while (drawn := filler(rng)).de[''] in used:
    pass
  return drawn


def worded(text: str, rng: random.Random) -> str:
  """Settles the choices of words, `[a|b]`."""
  return _CHOICE.sub(
    lambda match: match[1] if rng.random() < _FIRST_WORDING else match[2],
    text,
  )


def tidy(text: str) -> str:
  """Sets spaces, commas and the capitals at the beginning of sentences."""
  text = re.sub(r'\s+', ' ', text).strip()
  text = re.sub(r'\s+([.,])', r'\1', text)
  # A comma that closes an insertion gives way to the next mark.
  text = re.sub(r',([.,])', r'\1', text)
  return re.sub(r'\^\s*(.)', lambda match: match[1].upper(), text)
