# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The phrases that every topic may use: places, dates, times and counts."""

import datetime
import random

from scripts.bulletins import forms
from scripts.bulletins import phrases

_FIRST_DAY = datetime.date(2012, 1, 1)
_NUM_DAYS = 5113  # Fourteen years.

# Cities after which no time zone is called, hence unknown to CLDR.
_OTHER_CITIES = (
  ('Aachen', 'Aachen'),
  ('Augsburg', 'Augsburg'),
  ('Basel', 'Basel'),
  ('Bern', 'Bern'),
  ('Bonn', 'Bonn'),
  ('Bremen', 'Bremen'),
  ('Brunswick', 'Braunschweig'),
  ('Chemnitz', 'Chemnitz'),
  ('Cologne', 'Köln'),
  ('Dortmund', 'Dortmund'),
  ('Dresden', 'Dresden'),
  ('Duisburg', 'Duisburg'),
  ('Erfurt', 'Erfurt'),
  ('Frankfurt', 'Frankfurt'),
  ('Florence', 'Florenz'),
  ('Freiburg', 'Freiburg'),
  ('Geneva', 'Genf'),
  ('Gothenburg', 'Göteborg'),
  ('Graz', 'Graz'),
  ('Hamburg', 'Hamburg'),
  ('Hanover', 'Hannover'),
  ('Heidelberg', 'Heidelberg'),
  ('Kassel', 'Kassel'),
  ('Kiel', 'Kiel'),
  ('Krakow', 'Krakau'),
  ('Leipzig', 'Leipzig'),
  ('Lucerne', 'Luzern'),
  ('Magdeburg', 'Magdeburg'),
  ('Mainz', 'Mainz'),
  ('Milan', 'Mailand'),
  ('Munich', 'München'),
  ('Naples', 'Neapel'),
  ('Nuremberg', 'Nürnberg'),
  ('Regensburg', 'Regensburg'),
  ('Rostock', 'Rostock'),
  ('Salzburg', 'Salzburg'),
  ('Stuttgart', 'Stuttgart'),
  ('Trier', 'Trier'),
  ('Turin', 'Turin'),
  ('Ulm', 'Ulm'),
  ('Venice', 'Venedig'),
  ('Würzburg', 'Würzburg'),
)
_ZONES = (
  'Amsterdam Athens Belgrade Berlin Brussels Bucharest Budapest Copenhagen '
  'Dublin Helsinki Lisbon London Madrid Oslo Paris Prague Rome Sofia '
  'Stockholm Vienna Warsaw Zagreb Zurich'
).split()


def _zone_city(zone: str) -> phrases.Phrase:
  return phrases.both(lambda locale: forms.city(f'Europe/{zone}', locale))


_CITIES = (
  *(phrases.phrase(en, de) for en, de in _OTHER_CITIES),
  *(_zone_city(zone) for zone in _ZONES),
)

_COUNTRIES = (
  'AT BE BG CZ DE DK ES FI FR GR HR HU IE IT NO PL PT RO SE SI'
).split()


def _country(code: str) -> phrases.Phrase:
  german = forms.territory(code, forms.GERMAN)
  return phrases.phrase(
    forms.territory(code, forms.ENGLISH),
    german,
    to=f'nach {german}',
    located=f'in {german}',
  )


# The countries that have an article in German.
_SWITZERLAND = phrases.phrase(
  'Switzerland',
  'die Schweiz',
  to='in die Schweiz',
  located='in der Schweiz',
  dat='der Schweiz',
)
_NETHERLANDS = phrases.phrase(
  'the Netherlands',
  'die Niederlande',
  to='in die Niederlande',
  located='in den Niederlanden',
  dat='den Niederlanden',
)


_ALL_COUNTRIES = (
  *(_country(code) for code in _COUNTRIES),
  _SWITZERLAND,
  _NETHERLANDS,
)


def draw_day(rng: random.Random) -> datetime.date:
  """Draws a day."""
  return _FIRST_DAY + datetime.timedelta(days=rng.randrange(_NUM_DAYS))


def date(rng: random.Random) -> phrases.Phrase:
  """Draws 'March 3' or 'March 3, 2025', closed by a comma with the year.

  The form `on` is adverbial, with or without the day of the week, and closes
  with the comma that ends an apposition: 'am Montag, dem 3. März,'. Before
  another punctuation mark that comma is dropped (`skeletons.tidy`).
  """
  day = draw_day(rng)
  write = forms.full_date if rng.random() < 0.3 else forms.month_and_day
  english, german = write(day, forms.ENGLISH), write(day, forms.GERMAN)
  if write is forms.full_date:
    english += ','
  if rng.random() < 0.5:
    on = (f'on {english}', f'am {german}')
  else:
    weekday = phrases.both(lambda locale: forms.weekday(day, locale))
    on = (
      f'on {weekday.en[""]}, {english.removesuffix(",")},',
      f'am {weekday.de[""]}, dem {german},',
    )
  return phrases.Phrase({'': english, 'on': on[0]}, {'': german, 'on': on[1]})


def _on_weekday(rng: random.Random) -> phrases.Phrase:
  """Draws 'on Monday', 'am Montag'."""
  day = draw_day(rng)
  name = phrases.both(lambda locale: forms.weekday(day, locale))
  return phrases.phrase(f'on {name.en[""]}', f'am {name.de[""]}')


def weekday(rng: random.Random) -> phrases.Phrase:
  """Draws 'on Monday', 'am Montag', or a part of that day."""
  whole = _on_weekday(rng)
  if rng.random() < 0.4:
    return whole
  part = rng.choice(
    (
      ('morning', 'morgen'),
      ('afternoon', 'nachmittag'),
      ('evening', 'abend'),
    )
  )
  return phrases.phrase(f'{whole.en[""]} {part[0]}', whole.de[''] + part[1])


def _on_date(rng: random.Random) -> phrases.Phrase:
  drawn = date(rng)
  return phrases.phrase(drawn.en['on'], drawn.de['on'])


def _in_month(rng: random.Random) -> phrases.Phrase:
  day = draw_day(rng)
  month = phrases.both(lambda locale: forms.month(day, locale))
  return phrases.phrase(f'in {month.en[""]}', f'im {month.de[""]}')


def _in_year(rng: random.Random) -> phrases.Phrase:
  year = draw_day(rng).year
  return phrases.phrase(f'in {year}', f'im Jahr {year}')


def _in_days(rng: random.Random) -> phrases.Phrase:
  days = phrases.spelled_quantity('duration-day', 2, 12)(rng)
  return phrases.phrase(f'in {days.en[""]}', f'in {days.de["dat"]}')


def _days_ago(rng: random.Random) -> phrases.Phrase:
  days = phrases.spelled_quantity('duration-day', 2, 12)(rng)
  return phrases.phrase(f'{days.en[""]} ago', f'vor {days.de["dat"]}')


def _one_filler_of(*fillers: phrases.Filler) -> phrases.Filler:
  return lambda rng: rng.choice(fillers)(rng)


_TOMORROW = phrases.one_of(
  ('tomorrow', 'morgen'), ('tomorrow evening', 'morgen Abend')
)
_YESTERDAY = phrases.one_of(
  ('yesterday', 'gestern'), ('yesterday evening', 'gestern Abend')
)
_LAST_PERIOD = phrases.one_of(
  ('last week', 'in der letzten Woche'),
  ('last month', 'im letzten Monat'),
  ('last year', 'im letzten Jahr'),
)
_NEXT_PERIOD = phrases.one_of(
  ('next week', 'in der nächsten Woche'),
  ('this weekend', 'an diesem Wochenende'),
)

# When something happens, by the tense of the statement; `day` is a future
# that may go with a time of day, `period` a present that lasts.
TENSES = {
  'day': _one_filler_of(
    phrases.one_of(('tomorrow', 'morgen')), _on_weekday, _on_date
  ),
  'future': _one_filler_of(
    _TOMORROW, weekday, _on_date, _NEXT_PERIOD, _in_days, _in_month
  ),
  'past': _one_filler_of(
    _YESTERDAY,
    weekday,
    _on_date,
    _LAST_PERIOD,
    _days_ago,
    _in_month,
    _in_year,
  ),
  'present': phrases.one_of(
    ('today', 'heute'),
    ('this week', 'in dieser Woche'),
    ('this month', 'in diesem Monat'),
    ('this year', 'in diesem Jahr'),
  ),
  'period': phrases.one_of(
    ('this month', 'in diesem Monat'), ('this year', 'in diesem Jahr')
  ),
}


def city(rng: random.Random) -> phrases.Phrase:
  """Draws a city."""
  return rng.choice(_CITIES)


def country(rng: random.Random) -> phrases.Phrase:
  """Draws a country; `to` 'nach Polen', `located` 'in Polen', `dat`."""
  return rng.choice(_ALL_COUNTRIES)


def time(rng: random.Random) -> phrases.Phrase:
  """Draws a time of day: '2:05 PM', '14:05 Uhr'."""
  hour, minute = rng.randint(5, 23), rng.randrange(0, 60, 5)
  clock = phrases.both(lambda locale: forms.clock(hour, minute, locale))
  return phrases.phrase(clock.en[''], clock.de[''] + ' Uhr')


def hours(rng: random.Random) -> phrases.Phrase:
  """Draws a span: 'from 9:00 AM to 5:30 PM', 'von 09:00 bis 17:30 Uhr'."""
  first, last = rng.randint(6, 11), rng.randint(13, 22)
  minute = rng.choice((0, 15, 30, 45))
  opening = phrases.both(lambda locale: forms.clock(first, 0, locale))
  closing = phrases.both(lambda locale: forms.clock(last, minute, locale))
  return phrases.phrase(
    f'from {opening.en[""]} to {closing.en[""]}',
    f'von {opening.de[""]} bis {closing.de[""]} Uhr',
  )


def percent(rng: random.Random) -> phrases.Phrase:
  """Draws '3.4 percent', '3,4 Prozent'."""
  return phrases.quantity('concentr-percent', 0.2, 19.9, 1)(rng)


def spelled_count(low: int, high: int) -> phrases.Filler:
  """Returns a filler of numbers as words, from 2: 'three', 'drei'."""

  def draw(rng: random.Random) -> phrases.Phrase:
    value = rng.randint(low, high)
    return phrases.both(lambda locale: forms.cardinal(value, locale))

  return draw


def ordinal(rng: random.Random) -> phrases.Phrase:
  """Draws 'third', 'dritte'; `n` is 'dritten'."""
  value = rng.randint(2, 12)
  text = phrases.both(lambda locale: forms.ordinal(value, locale))
  return phrases.phrase(text.en[''], text.de[''], n=text.de[''] + 'n')


SHARED = {
  **TENSES,
  'city': city,
  'country': country,
  'date': date,
  'time': time,
  'hours': hours,
  'percent': percent,
  'few': spelled_count(2, 12),
  'dozens': spelled_count(13, 99),
  'ordinal': ordinal,
  'minutes': phrases.quantity('duration-minute', 5, 90),
  'duration': phrases.spelled_quantity('duration-hour', 2, 12),
  'price': phrases.price(1, 99, 'EUR', 'EUR', 'USD', 'GBP'),
}
