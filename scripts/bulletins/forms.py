# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Numbers, dates, times, units and money in English and German.

Babel's CLDR data decides formats and names, num2words the number words; what
neither covers (German case) is added here. Every function returns text with
plain spaces: CLDR puts no-break and narrow spaces into its patterns, which a
small vocabulary should not have to tell apart.
"""

import datetime
import functools
import re

from babel import Locale
from babel import dates
from babel import numbers
from babel import units
import num2words

ENGLISH = 'en_US'
GERMAN = 'de'
# In the order of the locale: 'March 3' or '3. März'.
MONTH_AND_DAY = 'MMMMd'

# Plural unit names that take an -n in the dative: Metern, Tagen, Monaten.
_DATIVE_ENDINGS = ('er', 'e')


def plain_spaces(text: str) -> str:
  """Replaces CLDR's no-break and narrow spaces by plain ones."""
  return re.sub('[\u00a0\u202f\u2009]', ' ', text)


@functools.lru_cache(maxsize=None)
def number(value: float, locale: str) -> str:
  """Formats a number: 12345.5 is '12,345.5' or '12.345,5'."""
  return plain_spaces(numbers.format_decimal(value, locale=locale))


@functools.lru_cache(maxsize=None)
def millions(value: float, locale: str) -> str:
  """Formats millions: 3.5 is '3.5 million' or '3,5 Millionen'."""
  return plain_spaces(
    numbers.format_compact_decimal(
      value * 1_000_000,
      format_type='long',
      locale=locale,
      fraction_digits=1,
    )
  )


@functools.lru_cache(maxsize=None)
def measure(value: float, unit: str, locale: str) -> str:
  """Formats a quantity with the unit's full name: '2 degrees Celsius'."""
  return plain_spaces(units.format_unit(value, unit, 'long', locale=locale))


def measure_in_words(value: int, unit: str, locale: str) -> str:
  """As `measure`, with the number as a word: 'zwei Stunden'.

  The value is at least 2, because the German 'one' would depend on gender.
  """
  _, name = measure(value, unit, locale).split(' ', 1)
  return f'{cardinal(value, locale)} {name}'


def dative_measure(text: str) -> str:
  """Puts a German quantity into the dative: 'bei 3,5 Metern'.

  Only the noun counted is inflected ('80 Kilometern pro Stunde'), and only in
  the plural ('bei 1 Meter').
  """
  value, noun, *rest = text.split(' ')
  if value != '1' and noun.endswith(_DATIVE_ENDINGS):
    noun += 'n'
  return ' '.join([value, noun, *rest])


@functools.lru_cache(maxsize=None)
def money(value: float, currency: str, locale: str) -> str:
  """Formats a price with its symbol: '€1,234.50' or '1.234,50 €'."""
  return plain_spaces(numbers.format_currency(value, currency, locale=locale))


@functools.lru_cache(maxsize=None)
def named_money(value: float, currency: str, locale: str) -> str:
  """Formats an amount with the currency's name: '20 britische Pfund'.

  CLDR capitalises the adjective of a German currency, as in a list; within a
  sentence only 'Schweizer' keeps its capital.
  """
  text = plain_spaces(
    numbers.format_currency(
      value,
      currency,
      format='#,##0' if value == int(value) else None,
      currency_digits=value != int(value),
      locale=locale,
      format_type='name',
    )
  )
  if locale == GERMAN:
    amount, name = text.split(' ', 1)
    if ' ' in name and not name.startswith('Schweizer'):
      name = name[0].lower() + name[1:]
    text = f'{amount} {name}'
  return text


@functools.lru_cache(maxsize=None)
def cardinal(value: int, locale: str) -> str:
  """Spells a number: 'twenty-one' or 'einundzwanzig'."""
  return num2words.num2words(value, lang=locale[:2])


@functools.lru_cache(maxsize=None)
def ordinal(value: int, locale: str) -> str:
  """Spells an ordinal: 'third' or 'dritte' (weak nominative)."""
  return num2words.num2words(value, lang=locale[:2], to='ordinal')


@functools.lru_cache(maxsize=None)
def clock(hour: int, minute: int, locale: str) -> str:
  """Formats a time of day: '2:05 PM' or '14:05' (without 'Uhr')."""
  return plain_spaces(
    dates.format_time(datetime.time(hour, minute), 'short', locale=locale)
  )


@functools.lru_cache(maxsize=None)
def date(day: datetime.date, pattern: str, locale: str) -> str:
  """Formats a date or a part of it.

  The pattern is 'long' ('March 3, 2025'), MONTH_AND_DAY ('March 3') or CLDR's
  pattern of a part, as 'EEEE' ('Monday').
  """
  if pattern == MONTH_AND_DAY:
    return dates.format_skeleton(pattern, day, locale=locale)
  return dates.format_date(day, pattern, locale=locale)


def territory(code: str, locale: str) -> str:
  """Names a country: 'Germany' or 'Deutschland'."""
  return Locale.parse(locale).territories[code]
