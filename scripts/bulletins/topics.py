# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the bulletins say, read from the files in `data`."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import itertools
from typing import Any

from scripts.bulletins import data
from scripts.bulletins import drawing
from scripts.bulletins import phrases

# Where the adverbial of time goes, in either language.
ADVERBIAL = '@'
# The order decides which topic a random number chooses.
NAMES = (
  'weather trains traffic prices currencies energy events sport population '
  'animals people cooking'
).split()
# How the entries of a table become phrases.
_TABLES = {
  'words': phrases.phrase,
  'plurals': phrases.plural,
  'things': phrases.thing,
}


@dataclasses.dataclass(frozen=True)
class Clause:
  """A statement without its place in a sentence.

  Slots are written `{city}` or `{city.form}`, a second phrase of the same
  kind `{city2}`.

  Attributes:
    en: the English words, which identify the clause, with ADVERBIAL where a
      time may be told.
    de: the German topological fields (`grammar.ordered`), likewise.
    tense: the filler that its adverbial is drawn from; '' for a clause that
      takes none.
    held_out: whether only the test split may use it.
  """

  en: str
  de: str
  tense: str = ''
  held_out: bool = False


@dataclasses.dataclass(frozen=True)
class Story:
  """Statements that fit each other, as German topological fields.

  A slot stands for the same phrase in all of them. ADVERBIAL, in every fact,
  is a time.

  Attributes:
    tense: the filler that the time, slot `when`, is drawn from.
    sources: who may be quoted: nominative and dative of a singular.
    facts: wordings of what happens, of which a report has one.
    reasons: statements that explain it.
    sequels: statements that follow from it.
    details: further statements.
  """

  tense: str
  sources: Mapping[str, str]
  facts: Sequence[str]
  reasons: Sequence[str]
  sequels: Sequence[str]
  details: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Topic:
  """What may be said about one subject.

  Attributes:
    fillers: its phrases by slot, the shared ones included.
    facts: the statements that bulletins are about.
    reasons: statements that may explain a fact.
    sequels: statements that may follow from a fact.
    stories: what the reports of the summarization corpus tell.
  """

  fillers: Mapping[str, phrases.Filler]
  facts: tuple[Clause, ...]
  reasons: tuple[Clause, ...]
  sequels: tuple[Clause, ...]
  stories: tuple[Story, ...]


def one_of(choices) -> phrases.Filler:
  """Returns a filler that draws one of the phrases."""
  return lambda rng: rng.choice(choices)


def read_topics() -> tuple[Topic, ...]:
  """Returns the topics in their fixed order."""
  shared = fillers(data.read('shared'))
  return tuple(_topic(data.read(f'topics/{name}'), shared) for name in NAMES)


def fillers(entries: Mapping[str, Any]) -> dict[str, phrases.Filler]:
  """Returns the fillers that a data file describes, by slot."""
  found = {slot: _drawn(**e) for slot, e in entries.get('draw', {}).items()}
  for table, make in _TABLES.items():
    for slot, pairs in entries.get(table, {}).items():
      found[slot] = one_of([make(*pair) for pair in pairs.items()])
  adjectives = entries.get('adjectives', {})
  for slot, nouns in entries.get('nouns', {}).items():
    found[slot] = one_of(_nouns(nouns, adjectives.get(slot, {'': ''})))
  for slot, names in entries.get('any_of', {}).items():
    found[slot] = lambda rng, names=names: found[rng.choice(names)](rng)
  return found


def _drawn(kind, en='{}', de='{}', **parameters) -> phrases.Filler:
  """Returns a filler of one kind, or of a pattern around it in `en` and `de`.

  A pattern has `{}` for the phrase, or `{dat}` for another form of it.
  """
  draw = functools.partial(getattr(drawing, kind), **parameters)
  if en == de == '{}':
    return draw

  def within(rng):
    drawn = draw(rng)
    return phrases.phrase(
      en.format(drawn.en[''], **drawn.en), de.format(drawn.de[''], **drawn.de)
    )

  return within


def _nouns(nouns, adjectives) -> list[phrases.Phrase]:
  """Returns every noun with every adjective."""
  pairs = itertools.product(nouns.items(), adjectives.items())
  return [
    phrases.noun(f'{en_adjective} {en}'.strip(), entry, adjective)
    for (en, entry), (en_adjective, adjective) in pairs
  ]


def _topic(entries, shared) -> Topic:
  facts, reasons, sequels = (
    tuple(Clause(**clause) for clause in entries[kind])
    for kind in ('facts', 'reasons', 'sequels')
  )
  stories = tuple(Story(**story) for story in entries['stories'])
  sources = [phrases.source(**source) for source in entries['sources']]
  own = {**shared, **fillers(entries), 'source': one_of(sources)}
  return Topic(own, facts, reasons, sequels, stories)
