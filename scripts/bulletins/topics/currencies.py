# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exchange rates and markets."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import forms
from scripts.bulletins import grammar
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'one euro is worth {rate} @',
    'ein Euro / ist / @ {rate} wert /',
    'present',
  ),
  clauses.Clause(
    'the euro rose to {rate} @',
    'der Euro / ist / @ auf {rate} / gestiegen',
    'past',
  ),
  clauses.Clause(
    'the euro fell to {rate} @',
    'der Euro / ist / @ auf {rate} / [gesunken|gefallen]',
    'past',
  ),
  clauses.Clause(
    '{currency.the} lost {percent} against {currency2.the} @',
    '{currency.the_nom} / hat / @ gegenüber {currency2.the_dat} '
    '{percent} / verloren',
    'past',
  ),
  clauses.Clause(
    '{currency.the} gained {percent} against the euro @',
    '{currency.the_nom} / hat / @ gegenüber dem Euro {percent} / gewonnen',
    'past',
  ),
  clauses.Clause(
    'travelers in {city} get {amount} for {dozens} euros @',
    'Reisende in {city} / bekommen / @ {amount} für {dozens} Euro /',
    'present',
  ),
  clauses.Clause(
    'the central bank raised the interest rate to {percent} @',
    'die Zentralbank / hat / @ den Leitzins auf {percent} / erhöht',
    'past',
  ),
  clauses.Clause(
    'the central bank lowered the interest rate by {percent} @',
    'die Zentralbank / hat / @ den Leitzins um {percent} / gesenkt',
    'past',
  ),
  clauses.Clause(
    'the stock index closed at {points} points @',
    'der Aktienindex / schloss / @ bei {points} Punkten /',
    'past',
  ),
  clauses.Clause(
    'an ounce of gold costs {gold} @',
    'eine Unze Gold / kostet / @ {gold} /',
    'present',
  ),
  clauses.Clause(
    'the euro will rise to {rate} @',
    'der Euro / steigt / @ auf {rate} /',
    'future',
  ),
  clauses.Clause(
    'the central bank will lower the interest rate to {percent} @',
    'die Zentralbank / senkt / @ den Leitzins auf {percent} /',
    'future',
  ),
  clauses.Clause(
    '{currency.the} gained {percent} against {currency2.the} @',
    '{currency.the_nom} / hat / @ gegenüber {currency2.the_dat} '
    '{percent} / gewonnen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'the stock index in {city} fell to {points} points @',
    'der Aktienindex in {city} / ist / @ auf {points} Punkte / gesunken',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'the central bank raised the interest rate by {percent} @',
    'die Zentralbank / hat / @ den Leitzins um {percent} / erhöht',
    'past',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'investors are buying more {asset}',
    '[Anleger|Investoren] / kaufen / mehr {asset} /',
  ),
  clauses.Clause(
    'exports from {country} have fallen by {percent2}',
    'die Exporte aus {country.dat} / sind / um {percent2} / gesunken',
  ),
  clauses.Clause(
    'inflation in {country} is at {percent2}',
    'die Inflation {country.located} / liegt / bei {percent2} /',
  ),
  clauses.Clause(
    'the economy in {country} is growing faster',
    'die Wirtschaft {country.located} / wächst / schneller /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'banks are charging a fee of {price}',
    'Banken / verlangen / eine Gebühr von {price} /',
  ),
  clauses.Clause(
    'the next meeting will take place {date.on}',
    'die nächste Sitzung / findet / {date.on} / statt+',
  ),
  clauses.Clause(
    'tourists should compare the rates in {city3}',
    'Touristen / sollten / die Kurse in {city3} / vergleichen',
  ),
  clauses.Clause(
    'loans will become more expensive',
    'Kredite / werden / teurer /',
  ),
  clauses.Clause(
    'the index in {country2} will rise to {points2} points',
    'der Index {country2.located} / steigt / auf {points2} Punkte /',
  ),
)

_CURRENCIES = (
  phrases.noun('US dollar', grammar.Noun('US-Dollar', 'm')),
  # 'Schweizer' is not inflected, hence part of the noun.
  phrases.noun('Swiss franc', grammar.Noun('Schweizer Franken', 'm')),
  phrases.noun('pound', grammar.Noun('Pfund', 'n'), 'British', 'britisch'),
  phrases.noun('krona', grammar.Noun('Krone', 'f'), 'Swedish', 'schwedisch'),
  phrases.noun('krone', grammar.Noun('Krone', 'f'), 'Danish', 'dänisch'),
  phrases.noun('yen', grammar.Noun('Yen', 'm'), 'Japanese', 'japanisch'),
)
# Units of the currency for one euro, roughly.
_RATES = (
  ('USD', 1.1),
  ('CHF', 0.96),
  ('GBP', 0.86),
  ('SEK', 11.2),
  ('DKK', 7.46),
  ('JPY', 158.0),
)


def _named(value: float, currency: str) -> phrases.Phrase:
  return phrases.both(lambda locale: forms.named_money(value, currency, locale))


def _rate(rng: random.Random) -> phrases.Phrase:
  """Draws what a euro is worth: '1.09 US dollars', '1,09 US-Dollar'."""
  currency, rate = rng.choice(_RATES)
  return _named(phrases.decimal(rng, 0.9 * rate, 1.1 * rate, 2), currency)


def _amount(rng: random.Random) -> phrases.Phrase:
  """Draws a round sum of foreign money: '85 British pounds'."""
  currency, rate = rng.choice(_RATES)
  return _named(round(rng.randint(15, 99) * rate), currency)


TOPIC = clauses.Topic(
  name='currencies',
  sources=(
    clauses.source('the central bank', 'die Zentralbank', 'der Zentralbank'),
    clauses.sources('analysts', 'Analysten', 'Analysten'),
    clauses.sources('traders', 'Händler', 'Händlern'),
  ),
  fillers={
    **fillers.SHARED,
    'currency': phrases.one_phrase_of(_CURRENCIES),
    'rate': _rate,
    'amount': _amount,
    'points': phrases.whole_number(4000, 19999),
    'gold': phrases.price(1100, 2700, 'EUR', 'USD'),
    'asset': phrases.one_of(
      ('gold', 'Gold'),
      ('stocks', 'Aktien'),
      ('bonds', 'Anleihen'),
      ('silver', 'Silber'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
