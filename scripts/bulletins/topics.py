# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the bulletins say, read from the files in `data`."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import itertools
import pathlib
import tomllib
from typing import Any

from scripts.bulletins import drawing
from scripts.bulletins import phrases

_DATA = pathlib.Path(__file__).parent / 'data'
# Where the adverbial of time goes, in either language.
ADVERBIAL = '@'
# The order decides which topic a random number chooses.
_NAMES = (
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


def read(name: str) -> dict[str, Any]:
  """Reads a data file by its path below `data`, without the suffix."""
  return tomllib.loads((_DATA / f'{name}.toml').read_text(encoding='utf-8'))


def read_topics() -> tuple[Topic, ...]:
  """Returns the topics in their fixed order."""
  shared = fillers(read('shared'))
  return tuple(_topic(read(f'topics/{name}'), shared) for name in _NAMES)


def fillers(data: Mapping[str, Any]) -> dict[str, phrases.Filler]:
  """Returns the fillers that a data file describes, by slot."""
  found = {slot: _drawn(**e) for slot, e in data.get('draw', {}).items()}
  for table, make in _TABLES.items():
    for slot, entries in data.get(table, {}).items():
      found[slot] = one_of([make(*entry) for entry in entries.items()])
  for slot, entries in data.get('nouns', {}).items():
    found[slot] = one_of(_nouns(entries, data.get('adjectives', {}).get(slot)))
  for slot, names in data.get('any_of', {}).items():
    found[slot] = _any_of([found[name] for name in names])
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


def _nouns(entries, adjectives) -> list[phrases.Phrase]:
  """Returns every noun with every adjective, if there are any."""
  if not adjectives:
    return [phrases.noun(*entry) for entry in entries.items()]
  pairs = itertools.product(entries.items(), adjectives.items())
  return [
    phrases.noun(f'{en_adjective} {en}', entry, adjective)
    for (en, entry), (en_adjective, adjective) in pairs
  ]


def _any_of(choices) -> phrases.Filler:
  return lambda rng: rng.choice(choices)(rng)


def _topic(data, shared) -> Topic:
  facts, reasons, sequels = (
    tuple(Clause(**clause) for clause in data[kind])
    for kind in ('facts', 'reasons', 'sequels')
  )
  stories = tuple(Story(**story) for story in data['stories'])
  sources = [phrases.source(**source) for source in data['sources']]
  own = {**shared, **fillers(data), 'source': one_of(sources)}
  return Topic(own, facts, reasons, sequels, stories)
