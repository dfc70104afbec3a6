# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A phrase in both languages, made from entries of the data files."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import random
import re

from scripts.bulletins import forms
from scripts.bulletins import grammar

# 'der (alt) Bus, des Busses': article, stem of an adjective, noun, genitive.
_ENTRY = re.compile(r'(der|die|das) (?:\((\w+)\) )?([^,]+)(?:, des (.+))?')


@dataclasses.dataclass(frozen=True)
class Phrase:
  """The same thing said in English and German.

  Attributes:
    en: its English forms by name. The form '' is the default, and stands in
      for forms that only German tells apart.
    de: its German forms by name, the default likewise.
  """

  en: Mapping[str, str]
  de: Mapping[str, str]


Filler = Callable[[random.Random], Phrase]


def phrase(en: str, de: str, **german_forms: str) -> Phrase:
  """Returns a phrase that has one form in English."""
  return Phrase({'': en}, {'': de, **german_forms})


def both(make: Callable[[str], str]) -> Phrase:
  """Returns the phrase that `make` spells out in a given locale."""
  return phrase(make(forms.ENGLISH), make(forms.GERMAN))


def plural(en: str, de: str) -> Phrase:
  """Returns a plural noun, form `dat` 'den Pferden'."""
  return phrase(en, de, dat=grammar.dative_plural(de))


def thing(en: str, entry: str) -> Phrase:
  """Returns a noun without its article, form `the` 'die Pizza'."""
  return phrase(en, entry.split(' ', 1)[1], the=entry)


def noun(en: str, entry: str, adjective: str = '') -> Phrase:
  """Returns a noun phrase with all its articles and cases.

  Its forms are `a` and `the` in English; `a_nom`, `the_dat` and so on in
  German, with `in_the` and `to_the` for 'im' and 'zum' with the dative.

  Args:
    en: the English noun, with its adjective.
    entry: the German noun as in a dictionary, with its article. The genitive
      follows a comma if it is not formed by an added -s, and the stem of an
      adjective stands in brackets: 'der (alt) Bus, des Busses'.
    adjective: stem of an adjective, if the entry has none.
  """
  article, own_adjective, word, genitive = _ENTRY.fullmatch(entry).groups()
  word = grammar.Noun(word, grammar.GENDERS[article], genitive)
  adjective = own_adjective or adjective
  dative = grammar.definite(word, grammar.DATIVE, adjective)
  german = {
    'in_the': grammar.contracted('in', dative),
    'to_the': grammar.contracted('zu', dative),
  }
  for case in grammar.CASES:
    german[f'a_{case}'] = grammar.indefinite(word, case, adjective)
    german[f'the_{case}'] = grammar.definite(word, case, adjective)
  # By spelling: every u that begins one of the words ('used') is a 'you'.
  indefinite = 'an' if en[0] in 'aeioAEIO' else 'a'
  return Phrase(
    {'': en, 'a': f'{indefinite} {en}', 'the': f'the {en}'},
    {'': german['the_nom'], **german},
  )


def source(
  en: str, de: str, dative: str, plural: Sequence[str] = ()
) -> Phrase:
  """Returns somebody to quote, with the verbs that quote them.

  Args:
    en: the English name.
    de: the German nominative.
    dative: the German dative.
    plural: the languages, 'en' or 'de', in which the name is a plural.
  """
  third_person = '' if 'en' in plural else 's'
  if 'de' in plural:
    says, announced, expects = 'teilen mit', 'mitteilten', 'rechnen'
  else:
    says, announced, expects = 'teilt mit', 'mitteilte', 'rechnet'
  return Phrase(
    {
      '': en,
      'says': f'{en} say{third_person}',
      'expects': f'{en} expect{third_person}',
    },
    {
      '': de,
      'dat': dative,
      'says': f'{de} {says}',
      'announced': f'{de} {announced}',
      'expects': f'{de} {expects} damit',
      'expects_inv': f'{expects} {de} damit',
    },
  )
