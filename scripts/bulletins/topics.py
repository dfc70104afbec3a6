# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the bulletins say, read from the files in `data`."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import itertools
import re
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
# `<p=in {city}|near {city}>`: alternatives, named by a letter.
_ALTERNATIVES = re.compile(r'<(\w)=([^>]*)>')
# Keep the slots of further reasons and sequels apart from those of facts.
_SUFFIXES = {'reasons': '3', 'sequels': '4'}
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


def read_training_topics() -> tuple[Topic, ...]:
  """Returns the topics with everything that training may state.

  To the facts of `read_topics`, without those held out for the test split, come
  those of `data/training`, likewise reasons and sequels.
  """
  read = zip(NAMES, read_topics(), strict=True)
  return tuple(_extended(t, data.read(f'training/{name}')) for name, t in read)


def _extended(topic: Topic, entries: Mapping[str, Any]) -> Topic:
  held_out = {canonical(fact.en) for fact in topic.facts if fact.held_out}
  further = [
    Clause(*texts, tense='' if tense == 'timeless' else tense)
    for tense, patterns in entries['facts'].items()
    for texts in alternatives(patterns)
  ]
  # Alternatives may combine to a fact that is held out.
  facts = (*topic.facts, *further)
  facts = tuple(f for f in facts if canonical(f.en) not in held_out)
  reasons, sequels = (
    tuple(
      Clause(*(renumbered(text, suffix) for text in texts))
      for texts in alternatives(entries[kind])
    )
    for kind, suffix in _SUFFIXES.items()
  )
  return dataclasses.replace(
    topic,
    facts=facts,
    reasons=topic.reasons + reasons,
    sequels=topic.sequels + sequels,
  )


def canonical(en: str) -> str:
  """Returns the English words of a clause without the numbers of its slots."""
  return re.sub(r'(\{[a-z_]+)\d*', r'\1', en)


def renumbered(text: str, suffix: str) -> str:
  """Gives the slots of a clause numbers that no other clause uses."""
  return re.sub(r'\{([a-z_]+)(\d*)', rf'{{\1\g<2>{suffix}', text)


def alternatives(patterns: Mapping[str, str]) -> list[tuple[str, str]]:
  """Returns the English and German clauses that the patterns describe.

  Alternatives of one name are chosen together: of `<v=a|b> <v=c|d>` come
  'a c' and 'b d'.
  """
  found = []
  for texts in patterns.items():
    named = _ALTERNATIVES.findall(' '.join(texts))
    numbers = {name: range(len(words.split('|'))) for name, words in named}
    for chosen in itertools.product(*numbers.values()):
      choice = dict(zip(numbers, chosen, strict=True))
      found.append(tuple(_chosen(text, choice) for text in texts))
  return found


def _chosen(text: str, choice: Mapping[str, int]) -> str:
  return _ALTERNATIVES.sub(
    lambda match: match[2].split('|')[choice[match[1]]], text
  )


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
