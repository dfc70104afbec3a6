# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Electricity and gas."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import forms
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'a household in {city} uses {consumption} of electricity {rhythm}',
    'ein Haushalt in {city} / verbraucht / {consumption} Strom {rhythm} /',
  ),
  clauses.Clause(
    'a kilowatt-hour of electricity costs {dozens} cents in {city} @',
    'eine Kilowattstunde Strom / kostet / @ in {city} {dozens} Cent /',
    'present',
  ),
  clauses.Clause(
    'the {plant} near {city} produced {output} of electricity @',
    '{plant} bei {city} / hat / @ {output} Strom / erzeugt',
    'past',
  ),
  clauses.Clause(
    'wind power covered {share} of demand in {country} @',
    'die Windkraft / deckte / @ {share} des Bedarfs {country.located} /',
    'past',
  ),
  clauses.Clause(
    'electricity consumption in {country} fell by {percent} @',
    'der Stromverbrauch {country.located} / ist / @ um {percent} '
    '/ [gesunken|gefallen]',
    'past',
  ),
  clauses.Clause(
    'the gas tanks in {country} are filled to {share} @',
    'die Gasspeicher {country.located} / sind / @ zu {share} / gefüllt',
    'present',
  ),
  clauses.Clause(
    'the power in {city} will be out {hours} @',
    'der Strom in {city} / fällt / @ {hours} / aus+',
    'day',
  ),
  clauses.Clause(
    '{few} wind turbines will be built near {city} @',
    '{few} Windräder / werden / @ bei {city} / gebaut',
    'future',
  ),
  clauses.Clause(
    'gas consumption in {city} rose by {percent} @',
    'der Gasverbrauch in {city} / ist / @ um {percent} / gestiegen',
    'past',
  ),
  clauses.Clause(
    'the {plant} near {city} will be switched off @',
    '{plant} bei {city} / wird / @ / abgeschaltet',
    'future',
  ),
  clauses.Clause(
    'the {plant} near {city} covered {share} of demand @',
    '{plant} bei {city} / deckte / @ {share} des Bedarfs /',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'electricity consumption in {city} fell to {output} @',
    'der Stromverbrauch in {city} / ist / @ auf {output} / gesunken',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    '{few} wind turbines near {city} will be switched off @',
    '{few} Windräder bei {city} / werden / @ / abgeschaltet',
    'future',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'the wind is blowing {strongly}',
    'der Wind / weht / {strongly} /',
  ),
  clauses.Clause(
    'many households in {country2} are saving energy',
    'viele Haushalte {country2.located} / sparen / Energie /',
  ),
  clauses.Clause(
    'the power plant in {city3} is being inspected',
    'das Kraftwerk in {city3} / wird / geprüft /',
  ),
  clauses.Clause(
    'the winter was {mild}',
    'der Winter / war / {mild} /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'customers will save up to {saving} per year',
    'Kunden / sparen / bis zu {saving} pro Jahr /',
  ),
  clauses.Clause(
    'the meters will be read {date.on}',
    'die Zähler / werden / {date.on} / abgelesen',
  ),
  clauses.Clause(
    'the repair will cost {millions} euros',
    'die Reparatur / kostet / {millions} Euro /',
  ),
  clauses.Clause(
    'the price of gas will rise by {percent3} in {months}',
    'der Gaspreis / steigt / in {months.dat} um {percent3} /',
  ),
)


def _millions(rng: random.Random) -> phrases.Phrase:
  """Draws '3.5 million', '3,5 Millionen', more than one."""
  value = rng.randint(11, 99) / 10
  return phrases.both(lambda locale: forms.millions(value, locale))


def _consumption(rng: random.Random) -> phrases.Phrase:
  value = rng.randrange(900, 6000, 50)
  return phrases.both(
    lambda locale: forms.measure(value, 'energy-kilowatt-hour', locale)
  )


def _share(rng: random.Random) -> phrases.Phrase:
  """Draws a large share with the sign: '45.3%', '45,3 %'."""
  value = rng.randint(200, 969) / 10
  text = forms.number(value, forms.ENGLISH), forms.number(value, forms.GERMAN)
  return phrases.phrase(f'{text[0]}%', f'{text[1]} %')


TOPIC = clauses.Topic(
  name='energy',
  sources=(
    clauses.source(
      'the grid operator', 'der Netzbetreiber', 'dem Netzbetreiber'
    ),
    clauses.source('the ministry', 'das Ministerium', 'dem Ministerium'),
  ),
  fillers={
    **fillers.SHARED,
    'consumption': _consumption,
    'rhythm': phrases.one_of(
      ('per year', 'pro Jahr'), ('per month', 'pro Monat')
    ),
    'output': phrases.quantity('energy-kilowatt-hour', 2000, 95000),
    'share': _share,
    'saving': phrases.price(20, 400),
    'millions': _millions,
    'months': phrases.spelled_quantity('duration-month', 2, 12),
    'plant': phrases.one_of(
      ('power plant', 'das Kraftwerk'),
      ('solar plant', 'die Solaranlage'),
      ('wind farm', 'der Windpark'),
    ),
    'strongly': phrases.one_of(
      ('strongly', 'stark'),
      ('weakly', 'schwach'),
      ('steadily', 'stetig'),
    ),
    'mild': phrases.one_of(
      ('mild', 'mild'),
      ('long', 'lang'),
      ('cold', 'kalt'),
      ('dry', 'trocken'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
