# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A phrase in both languages, and ways to draw one."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import random

from scripts.bulletins import forms
from scripts.bulletins import grammar


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


def one_of(*pairs: tuple[str, str]) -> Filler:
  """Returns a filler that draws one of (English, German) pairs."""
  return one_phrase_of([phrase(en, de) for en, de in pairs])


def one_phrase_of(choices: Sequence[Phrase]) -> Filler:
  """Returns a filler that draws one of the phrases."""
  return lambda rng: rng.choice(choices)


def plurals(*pairs: tuple[str, str]) -> Filler:
  """Returns a filler of plural nouns, form `dat` 'den Pferden'."""
  return one_phrase_of(
    [phrase(en, de, dat=grammar.dative_plural(de)) for en, de in pairs]
  )


def noun(en: str, word: grammar.Noun, en_adjective='', adjective='') -> Phrase:
  """Returns a noun phrase with all its articles and cases.

  Its forms are `a` and `the` in English; `a_nom`, `the_dat` and so on in
  German, with `in_the` and `to_the` for 'im' and 'zum' with the dative.
  """
  english = f'{en_adjective} {en}'.strip()
  # By spelling: every u that begins one of the words ('used') is a 'you'.
  article = 'an' if english[0] in 'aeioAEIO' else 'a'
  dative = grammar.definite(word, grammar.DATIVE, adjective)
  german = {
    'in_the': grammar.contracted('in', dative),
    'to_the': grammar.contracted('zu', dative),
  }
  for case in grammar.CASES:
    german[f'a_{case}'] = grammar.indefinite(word, case, adjective)
    german[f'the_{case}'] = grammar.definite(word, case, adjective)
  return Phrase(
    {'': english, 'a': f'{article} {english}', 'the': f'the {english}'},
    {'': german['the_nom'], **german},
  )


def quantity(unit: str, low: float, high: float, digits: int = 0) -> Filler:
  """Returns a filler of quantities: '12 Kilometer', `dat` '12 Kilometern'."""

  def draw(rng: random.Random) -> Phrase:
    value = decimal(rng, low, high, digits)
    german = forms.measure(value, unit, forms.GERMAN)
    return phrase(
      forms.measure(value, unit, forms.ENGLISH),
      german,
      dat=forms.dative_measure(german),
    )

  return draw


def spelled_quantity(unit: str, low: int, high: int) -> Filler:
  """As `quantity`, with the number as a word: 'drei Tage', 'drei Tagen'."""

  def draw(rng: random.Random) -> Phrase:
    value = rng.randint(low, high)
    german = forms.measure_in_words(value, unit, forms.GERMAN)
    return phrase(
      forms.measure_in_words(value, unit, forms.ENGLISH),
      german,
      dat=forms.dative_measure(german),
    )

  return draw


def whole_number(low: int, high: int, step: int = 1) -> Filler:
  """Returns a filler of numbers in digits: '12,500' and '12.500'."""

  def draw(rng: random.Random) -> Phrase:
    value = rng.randrange(low, high + 1, step)
    return both(lambda locale: forms.number(value, locale))

  return draw


def price(low: float, high: float, *currencies: str) -> Filler:
  """Returns a filler of prices with cents: '€12.50' and '12,50 €'."""

  def draw(rng: random.Random) -> Phrase:
    currency = rng.choice(currencies or ('EUR',))
    value = decimal(rng, low, high, 2)
    return both(lambda locale: forms.money(value, currency, locale))

  return draw


def price_range(low: float, high: float) -> Filler:
  """Returns a filler of two prices in euros, forms `low` and `high`."""

  def draw(rng: random.Random) -> Phrase:
    values = sorted([decimal(rng, low, high, 2), decimal(rng, low, high, 2)])
    texts = [
      both(lambda locale, value=value: forms.money(value, 'EUR', locale))
      for value in values
    ]
    return Phrase(
      {'': texts[0].en[''], 'low': texts[0].en[''], 'high': texts[1].en['']},
      {'': texts[0].de[''], 'low': texts[0].de[''], 'high': texts[1].de['']},
    )

  return draw


def decimal(rng: random.Random, low: float, high: float, digits: int) -> float:
  """Draws a number of that many decimals between low and high."""
  scale = 10**digits
  value = rng.randint(round(low * scale), round(high * scale)) / scale
  return int(value) if digits == 0 else value
