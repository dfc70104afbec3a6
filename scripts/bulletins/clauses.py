# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A statement in both languages, with slots for phrases."""

import dataclasses

from scripts.bulletins import grammar
from scripts.bulletins import phrases

# Where the adverbial of time goes, in either language.
ADVERBIAL = '@'


@dataclasses.dataclass(frozen=True)
class Clause:
  """A statement without its place in a sentence.

  Slots are written `{city}` or `{city.form}`, a second phrase of the same
  kind `{city2}`.

  Attributes:
    en: the English words, with ADVERBIAL where a time may be told.
    de: the German topological fields (`grammar.ordered`), likewise.
    tense: the key of `fillers.TENSES` its adverbial is drawn from; '' for a
      clause that takes none.
    held_out: whether only the test split may use it.
  """

  en: str
  de: str
  tense: str = ''
  held_out: bool = False

  @property
  def name(self) -> str:
    """The English words identify a clause."""
    return self.en

  def english(self) -> str:
    """Returns the English words."""
    return self.en

  def german(self, order: str) -> str:
    """Returns the German words in one of the orders of `grammar`."""
    return grammar.ordered(self.de, order)


@dataclasses.dataclass(frozen=True)
class Topic:
  """What may be said about one subject.

  Attributes:
    name: of the subject.
    sources: who may be quoted, by `source` or `sources`.
    fillers: its own phrases, by slot.
    facts: the statements that bulletins are about.
    reasons: statements that may explain a fact.
    sequels: statements that may follow from a fact.
  """

  name: str
  sources: tuple[phrases.Phrase, ...]
  fillers: dict[str, phrases.Filler]
  facts: tuple[Clause, ...]
  reasons: tuple[Clause, ...]
  sequels: tuple[Clause, ...]


def source(en: str, de: str, dative: str) -> phrases.Phrase:
  """Returns somebody to quote, singular in both languages."""
  return phrases.Phrase(
    {'': en, 'says': f'{en} says', 'expects': f'{en} expects'},
    _quoted(de, dative, 'teilt mit', 'mitteilte', 'rechnet'),
  )


def sources(en: str, de: str, dative: str) -> phrases.Phrase:
  """Returns somebody to quote, plural in both languages."""
  return phrases.Phrase(
    {'': en, 'says': f'{en} say', 'expects': f'{en} expect'},
    _quoted(de, dative, 'teilen mit', 'mitteilten', 'rechnen'),
  )


def police() -> phrases.Phrase:
  """Returns the police, plural in English and singular in German."""
  german = source('', 'die Polizei', 'der Polizei').de
  return phrases.Phrase(sources('the police', '', '').en, german)


def _quoted(de, dative, says, announced, expects) -> dict[str, str]:
  return {
    '': de,
    'dat': dative,
    'says': f'{de} {says}',
    'announced': f'{de} {announced}',
    'expects': f'{de} {expects} damit',
    'expects_inv': f'{expects} {de} damit',
  }
