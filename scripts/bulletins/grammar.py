# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""German articles, adjective endings and word order."""

import dataclasses

MASCULINE, FEMININE, NEUTER = 'm', 'f', 'n'
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = 'nom', 'acc', 'dat', 'gen'
GENDERS = {'der': MASCULINE, 'die': FEMININE, 'das': NEUTER}
CASES = (NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE)

# Rows in the order of CASES.
_DEFINITE = {
  MASCULINE: ('der', 'den', 'dem', 'des'),
  FEMININE: ('die', 'die', 'der', 'der'),
  NEUTER: ('das', 'das', 'dem', 'des'),
}
_INDEFINITE = {
  MASCULINE: ('ein', 'einen', 'einem', 'eines'),
  FEMININE: ('eine', 'eine', 'einer', 'einer'),
  NEUTER: ('ein', 'ein', 'einem', 'eines'),
}
# After 'der' (weak) and after 'ein' (mixed).
_WEAK = {
  MASCULINE: ('e', 'en', 'en', 'en'),
  FEMININE: ('e', 'e', 'en', 'en'),
  NEUTER: ('e', 'e', 'en', 'en'),
}
_MIXED = {
  MASCULINE: ('er', 'en', 'en', 'en'),
  FEMININE: ('e', 'e', 'en', 'en'),
  NEUTER: ('es', 'es', 'en', 'en'),
}
_CONTRACTIONS = {
  ('in', 'dem'): 'im',
  ('zu', 'dem'): 'zum',
  ('zu', 'der'): 'zur',
}


@dataclasses.dataclass(frozen=True)
class Noun:
  """A German noun in the singular.

  Attributes:
    word: the nominative, which is also the accusative and the dative: nouns
      of the n-declension (der Herr, den Herrn) do not belong here.
    gender: MASCULINE, FEMININE or NEUTER.
    genitive: the genitive where it is not formed by an added -s.
  """

  word: str
  gender: str
  genitive: str | None = None

  def in_case(self, case: str) -> str:
    """Returns the noun in the given case."""
    if case != GENITIVE or self.gender == FEMININE:
      return self.word
    return self.genitive or self.word + 's'


def definite(noun: Noun, case: str, adjective: str = '') -> str:
  """Returns 'der neue Tisch' in the given case; the adjective is a stem."""
  return _noun_phrase(noun, case, adjective, _DEFINITE, _WEAK)


def indefinite(noun: Noun, case: str, adjective: str = '') -> str:
  """Returns 'ein neuer Tisch' in the given case; the adjective is a stem."""
  return _noun_phrase(noun, case, adjective, _INDEFINITE, _MIXED)


def _noun_phrase(noun, case, adjective, articles, endings) -> str:
  row = CASES.index(case)
  words = [articles[noun.gender][row]]
  if adjective:
    words.append(adjective + endings[noun.gender][row])
  return ' '.join([*words, noun.in_case(case)])


def dative_plural(plural: str) -> str:
  """Returns the dative of a plural noun: 'Pferden', 'Löwen', 'Zebras'."""
  return plural if plural.endswith(('n', 's')) else plural + 'n'


def contracted(preposition: str, noun_phrase: str) -> str:
  """Joins preposition and definite noun phrase: 'im Museum', 'zur Messe'."""
  article, rest = noun_phrase.split(' ', 1)
  joined = _CONTRACTIONS.get((preposition, article))
  return f'{joined or f"{preposition} {article}"} {rest}'


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
  if order == 'main':
    words = [subject, verb, middle, bracket]
  elif order == 'inv':
    words = [verb, subject, middle, bracket]
  elif order == 'sub' and prefix:
    words = [subject, middle, bracket + verb]
  elif order == 'sub':
    words = [subject, middle, bracket, verb]
  else:
    raise ValueError(f'order must be main, inv or sub. Got {order!r}.')
  return ' '.join(word for word in words if word)
