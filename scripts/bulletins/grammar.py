# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""German articles, adjective endings and word order."""

import dataclasses

from scripts.bulletins import data

CASES = ('nom', 'acc', 'dat', 'gen')
# Rows of words by table and article, in the order of CASES.
_DECLENSION = data.read('declension')


@dataclasses.dataclass(frozen=True)
class Noun:
  """A German noun in the singular.

  Attributes:
    word: the nominative, which is also the accusative and the dative: nouns
      of the n-declension (der Herr, den Herrn) do not belong here.
    article: 'der', 'die' or 'das'.
    genitive: the genitive where it is not formed by an added -s.
  """

  word: str
  article: str
  genitive: str | None = None

  def in_case(self, case: str) -> str:
    """Returns the noun in the given case."""
    if case != 'gen' or self.article == 'die':
      return self.word
    return self.genitive or self.word + 's'


def noun_phrase(
  noun: Noun, case: str, adjective: str = '', article: str = 'definite'
) -> str:
  """Returns 'der neue Tisch' in a case, or 'ein neuer Tisch' if 'indefinite'.

  The adjective is a stem.
  """
  endings = {'definite': 'weak', 'indefinite': 'mixed'}[article]
  word, ending = (
    _DECLENSION[table][noun.article].split()[CASES.index(case)]
    for table in (article, endings)
  )
  words = [word, adjective and adjective + ending, noun.in_case(case)]
  return ' '.join(filter(None, words))


def dative_plural(plural: str) -> str:
  """Returns the dative of a plural noun: 'Pferden', 'Löwen', 'Zebras'."""
  return plural if plural.endswith(('n', 's')) else plural + 'n'


def contracted(preposition: str, noun_phrase: str) -> str:
  """Joins preposition and definite noun phrase: 'im Museum', 'zur Messe'."""
  article, rest = noun_phrase.split(' ', 1)
  separate = f'{preposition} {article}'
  return f'{_DECLENSION["contractions"].get(separate, separate)} {rest}'


def ordered(fields: str, order: str) -> str:
  """Puts a clause into the word order that its place in a sentence asks for.

  A German clause is written by its topological fields,
  `subject / finite verb / middle / right bracket`:

    'der Zug / fällt / am Montag / aus+'
    main  der Zug fällt am Montag aus        (a sentence of its own)
    inv   fällt der Zug am Montag aus        (after anything put first)
    sub   der Zug am Montag ausfällt         (after a conjunction)

  Args:
    fields: the four fields. A right bracket ending in '+' is a separable
      prefix, which in a subordinate clause is written with its verb.
    order: 'main', 'inv' or 'sub'.
  """
  subject, verb, middle, bracket = (f.strip() for f in fields.split('/'))
  prefix = bracket.endswith('+')
  bracket = bracket.removesuffix('+')
  last = [bracket + verb] if prefix else [bracket, verb]
  orders = {
    'main': [subject, verb, middle, bracket],
    'inv': [verb, subject, middle, bracket],
    'sub': [subject, middle, *last],
  }
  if order not in orders:
    raise ValueError(f'order must be main, inv or sub. Got {order!r}.')
  return ' '.join(filter(None, orders[order]))
