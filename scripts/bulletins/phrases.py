# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A phrase in both languages, made from entries of the data files."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import random
import re

from scripts.bulletins import data
from scripts.bulletins import forms
from scripts.bulletins import grammar

_QUOTES = data.read('quotes')
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

  The German entry is as in a dictionary, with its article. The genitive follows
  a comma if it is not formed by an added -s. The stem of an adjective stands in
  brackets, 'der (alt) Bus, des Busses', or is given apart.
  """
  article, own_adjective, word, genitive = _ENTRY.fullmatch(entry).groups()
  word = grammar.Noun(word, article, genitive)
  german = {
    f'{name}_{case}': grammar.noun_phrase(
      word, case, own_adjective or adjective, article
    )
    for name, article in (('a', 'indefinite'), ('the', 'definite'))
    for case in grammar.CASES
  }
  for name, preposition in (('in_the', 'in'), ('to_the', 'zu')):
    german[name] = grammar.contracted(preposition, german['the_dat'])
  # By spelling: every u that begins one of the words ('used') is a 'you'.
  indefinite = 'an' if en[0] in 'aeioAEIO' else 'a'
  return Phrase(
    {'': en, 'a': f'{indefinite} {en}', 'the': f'the {en}'},
    {'': german['the_nom'], **german},
  )


def source(en: str, de: str, dative: str, plural: Sequence[str] = ()) -> Phrase:
  """Returns somebody to quote, with the verbs that quote them.

  `dative` is German; `plural` has the languages in which the name is one.
  """

  def quoted(language, name) -> dict[str, str]:
    forms_of = _QUOTES[language]['plural' if language in plural else 'singular']
    return {
      form: pattern.format(name=name, dative=dative)
      for form, pattern in forms_of.items()
    }

  return Phrase(quoted('en', en), quoted('de', de))
