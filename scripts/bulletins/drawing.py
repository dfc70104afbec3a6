# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kinds of phrases that are drawn: numbers, dates, places and people.

A data file names a function as `kind`, and gives its parameters.
"""

from collections.abc import Mapping, Sequence
import datetime
import random

from scripts.bulletins import forms
from scripts.bulletins import grammar
from scripts.bulletins.phrases import Phrase
from scripts.bulletins.phrases import both
from scripts.bulletins.phrases import phrase

_FIRST_DAY = datetime.date(2012, 1, 1)
_NUM_DAYS = 5113  # Fourteen years.
_PARTS_OF_DAY = dict(morning='morgen', afternoon='nachmittag', evening='abend')


def _day(rng: random.Random) -> datetime.date:
  return _FIRST_DAY + datetime.timedelta(days=rng.randrange(_NUM_DAYS))


def _value(rng, low, high, digits=0, step=1) -> float:
  """Draws a number of that many decimals between low and high."""
  scale = 10**digits
  value = rng.randrange(round(low * scale), round(high * scale) + 1, step)
  return value / scale if digits else value


def quantity(rng, unit, low, high, digits=0, step=1, spelled=False) -> Phrase:
  """Draws '12 Kilometer', or 'zwölf Kilometer', `dat` '12 Kilometern'."""
  value = _value(rng, low, high, digits, step)
  write = forms.measure_in_words if spelled else forms.measure
  text = both(lambda locale: write(value, unit, locale))
  german = text.de['']
  return phrase(text.en[''], german, dat=forms.dative_measure(german))


def number(rng, low, high, digits=0, step=1, form='number') -> Phrase:
  """Draws '12,500' and '12.500', or a number in another form of `forms`."""
  value = _value(rng, low, high, digits, step)
  return both(lambda locale: getattr(forms, form)(value, locale))


def ordinal(rng, low=0, high=0, values: Sequence[int] = ()) -> Phrase:
  """Draws 'third', 'dritte', form `n` 'dritten'."""
  value = rng.choice(values) if values else rng.randint(low, high)
  text = both(lambda locale: forms.ordinal(value, locale))
  return phrase(text.en[''], text.de[''], n=text.de[''] + 'n')


def price(rng, low, high, currencies: Sequence[str] = ('EUR',)) -> Phrase:
  """Draws a price with cents: '€12.50', '12,50 €'."""
  currency = rng.choice(currencies)
  value = _value(rng, low, high, 2)
  return both(lambda locale: forms.money(value, currency, locale))


def price_range(rng, low, high) -> Phrase:
  """Draws two prices in euros, forms `low` and `high`."""
  values = sorted([_value(rng, low, high, 2), _value(rng, low, high, 2)])
  (en_low, en_high), (de_low, de_high) = (
    [forms.money(value, 'EUR', locale) for value in values]
    for locale in (forms.ENGLISH, forms.GERMAN)
  )
  english = {'': en_low, 'low': en_low, 'high': en_high}
  return Phrase(english, {'': de_low, 'low': de_low, 'high': de_high})


def currency(rng, rates: Mapping[str, float], exact=True) -> Phrase:
  """Draws what a euro is worth: '1,09 US-Dollar', or a round sum of money."""
  code, usual = rng.choice(list(rates.items()))
  if exact:
    value = _value(rng, 0.9 * usual, 1.1 * usual, 2)
  else:
    value = round(rng.randint(15, 99) * usual)
  return both(lambda locale: forms.named_money(value, code, locale))


def score(rng, winner) -> Phrase:
  """Draws '3-1', '3:1', won by the 'first' side, the 'second' or 'neither'."""
  fewer = rng.randint(0, 5 if winner == 'neither' else 4)
  more = fewer if winner == 'neither' else fewer + rng.randint(1, 3)
  first, second = (more, fewer) if winner == 'first' else (fewer, more)
  return phrase(f'{first}-{second}', f'{first}:{second}')


def label(rng, prefixes: Sequence[str], low, high) -> Phrase:
  """Draws a name with a number, the same in both languages: 'ICE 512'."""
  name = f'{rng.choice(prefixes)} {rng.randint(low, high)}'
  return phrase(name, name)


def time(rng, first=5, last=23) -> Phrase:
  """Draws a time of day: '2:05 PM', '14:05 Uhr'."""
  hour, minute = rng.randint(first, last), rng.randrange(0, 60, 5)
  clock = both(lambda locale: forms.clock(hour, minute, locale))
  return phrase(clock.en[''], clock.de[''] + ' Uhr')


def hours(rng) -> Phrase:
  """Draws a span: 'from 9:00 AM to 5:30 PM', 'von 09:00 bis 17:30 Uhr'."""
  first, last = rng.randint(6, 11), rng.randint(13, 22)
  minute = rng.choice((0, 15, 30, 45))
  start = both(lambda locale: forms.clock(first, 0, locale))
  end = both(lambda locale: forms.clock(last, minute, locale))
  return phrase(
    f'from {start.en[""]} to {end.en[""]}',
    f'von {start.de[""]} bis {end.de[""]} Uhr',
  )


def date(rng) -> Phrase:
  """Draws 'March 3' or 'March 3, 2025', closed by a comma with the year.

  The form `on` is adverbial, with or without the day of the week, and closes
  with the comma that ends an apposition: 'am Montag, dem 3. März,'. Before
  another punctuation mark that comma is dropped (`skeletons.tidy`).
  """
  day = _day(rng)
  with_year = rng.random() < 0.3
  pattern = 'long' if with_year else forms.MONTH_AND_DAY
  text = both(lambda locale: forms.date(day, pattern, locale))
  english = text.en[''] + ',' * with_year
  german = text.de['']
  on = (f'on {english}', f'am {german}')
  if rng.random() >= 0.5:
    weekday = both(lambda locale: forms.date(day, 'EEEE', locale))
    on = (
      f'on {weekday.en[""]}, {english.removesuffix(",")},',
      f'am {weekday.de[""]}, dem {german},',
    )
  return Phrase({'': english, 'on': on[0]}, {'': german, 'on': on[1]})


def calendar(rng, pattern) -> Phrase:
  """Draws a part of a date by its CLDR pattern, as 'LLLL' for 'March'."""
  day = _day(rng)
  return both(lambda locale: forms.date(day, pattern, locale))


def part_of_weekday(rng) -> Phrase:
  """Draws 'on Monday', 'am Montag', or a part of that day."""
  day = calendar(rng, 'EEEE')
  english, german = f'on {day.en[""]}', f'am {day.de[""]}'
  if rng.random() < 0.4:
    return phrase(english, german)
  part = rng.choice(list(_PARTS_OF_DAY.items()))
  return phrase(f'{english} {part[0]}', german + part[1])


def occasion(rng, adverbials: Sequence[str]) -> Phrase:
  """Draws a German time; forms `until` and `later` are a date after it.

  The adverbials are patterns with {weekday}, {part} of the day, {date},
  {month}, {year} or a {few}.
  """
  day = _day(rng)
  later = day + datetime.timedelta(days=rng.randint(5, 40))
  text = rng.choice(adverbials).format(
    weekday=forms.date(day, 'EEEE', forms.GERMAN),
    part=rng.choice(list(_PARTS_OF_DAY.values())),
    date=forms.date(day, forms.MONTH_AND_DAY, forms.GERMAN),
    month=forms.date(day, 'LLLL', forms.GERMAN),
    year=day.year,
    few=forms.cardinal(rng.randint(2, 12), forms.GERMAN),
  )
  date_after = forms.date(later, forms.MONTH_AND_DAY, forms.GERMAN)
  return phrase('', text, until=date_after, later=f'am {date_after}')


def country(rng, others: Mapping[str, Mapping[str, str]], codes) -> Phrase:
  """Draws a country; `to` 'nach Polen', `located` 'in Polen', `dat`."""
  name = rng.choice([*codes.split(), *others])
  if name in others:
    return Phrase({'': name}, others[name])
  text = both(lambda locale: forms.territory(name, locale))
  german = text.de['']
  return phrase(
    text.en[''], german, to=f'nach {german}', located=f'in {german}'
  )


def person(rng, occupations, women, men, surnames) -> Phrase:
  """Draws 'the baker Anna Beck', 'die Bäckerin Anna Beck' by case."""
  english, (masculine, feminine) = rng.choice(list(occupations.items()))
  if rng.random() < 0.5:
    first, noun = rng.choice(women.split()), grammar.Noun(feminine, 'die')
  else:
    first, noun = rng.choice(men.split()), grammar.Noun(masculine, 'der')
  name = f'{first} {rng.choice(surnames.split())}'
  cases = {
    case: f'{grammar.noun_phrase(noun, case)} {name}' for case in grammar.CASES
  }
  return phrase(f'the {english} {name}', cases['nom'], **cases)
