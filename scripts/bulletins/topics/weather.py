# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Weather forecasts."""

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'it will rain in {city} @',
    'es / wird / @ in {city} / regnen',
    'future',
  ),
  clauses.Clause(
    'temperatures in {city} will rise to {high} @',
    'die Temperaturen in {city} / steigen / @ auf {high} /',
    'future',
  ),
  clauses.Clause(
    'temperatures in {city} will fall to {low} @',
    'die Temperaturen in {city} / [sinken|fallen] / @ auf {low} /',
    'future',
  ),
  clauses.Clause(
    'up to {snow} of snow may fall in {city} @',
    'bis zu {snow} Schnee / können / @ in {city} / fallen',
    'future',
  ),
  clauses.Clause(
    'a {windy} wind from the {direction} will blow in {city} @',
    'ein {windy} Wind aus {direction} / weht / @ in {city} /',
    'future',
  ),
  clauses.Clause(
    'there will be gusts of up to {speed} in {city} @',
    'es / gibt / @ in {city} Böen von bis zu {speed.dat} /',
    'future',
  ),
  clauses.Clause(
    'the sun will shine in {city} for {duration} @',
    'die Sonne / scheint / @ in {city} {duration} lang /',
    'future',
  ),
  clauses.Clause(
    'there will be {phenomenon} in {city} @',
    'es / gibt / @ in {city} {phenomenon} /',
    'future',
  ),
  clauses.Clause(
    'it will stay {mood} in {city} @',
    'es / bleibt / @ in {city} {mood} /',
    'future',
  ),
  clauses.Clause(
    'up to {rain} of rain may fall in {city} and {city2} @',
    'bis zu {rain} Regen / können / @ in {city} und {city2} / fallen',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    'temperatures in {city} will stay at {high} @',
    'die Temperaturen in {city} / bleiben / @ bei {high} /',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    'there will be {phenomenon} and gusts of up to {speed} @',
    'es / gibt / @ {phenomenon} und Böen von bis zu {speed.dat} /',
    'future',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'a storm is moving to {country} from the {direction}',
    'ein Sturm / zieht / aus {direction} {country.to} /',
  ),
  clauses.Clause(
    '{airy} air is flowing to {country}',
    '{airy} Luft / strömt / {country.to} /',
  ),
  clauses.Clause(
    'the air pressure has fallen to {pressure}',
    'der Luftdruck / ist / auf {pressure} / [gefallen|gesunken]',
  ),
  clauses.Clause(
    'an area of high pressure lies over {country}',
    'ein Hochdruckgebiet / liegt / über {country.dat} /',
  ),
  clauses.Clause(
    'up to {rain} of rain has fallen in {country}',
    'bis zu {rain} Regen / sind / {country.located} / gefallen',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'the next forecast will follow at {time}',
    'die nächste Vorhersage / folgt / um {time} /',
  ),
  clauses.Clause(
    'the water level of the {river} will rise by {level}',
    'der Wasserstand {river} / steigt / um {level} /',
  ),
  clauses.Clause(
    'visibility in {city3} will be only {sight}',
    'die Sicht in {city3} / beträgt / nur {sight} /',
  ),
  clauses.Clause(
    'the night will be {mood}',
    'die Nacht / wird / {mood} /',
  ),
  clauses.Clause(
    'many flights to {city3} will be canceled',
    'viele Flüge nach {city3} / fallen / / aus+',
  ),
  clauses.Clause(
    'temperatures will stay at {low} for {days}',
    'die Temperaturen / bleiben / {days} lang bei {low} /',
  ),
)

_DIRECTIONS = (
  ('north', 'Norden'),
  ('south', 'Süden'),
  ('east', 'Osten'),
  ('west', 'Westen'),
  ('northwest', 'Nordwesten'),
  ('southeast', 'Südosten'),
)
_PHENOMENA = (
  ('thunderstorms', 'Gewitter'),
  ('heavy rain', 'starken Regen'),
  ('light rain', 'leichten Regen'),
  ('heavy snowfall', 'starken Schneefall'),
  ('dense fog', 'dichten Nebel'),
  ('black ice', 'Glatteis'),
  ('night frost', 'Nachtfrost'),
  ('showers', 'Schauer'),
)
_RIVERS = (
  ('Danube', 'der Donau'),
  ('Elbe', 'der Elbe'),
  ('Main', 'des Mains'),
  ('Moselle', 'der Mosel'),
  ('Neckar', 'des Neckars'),
  ('Oder', 'der Oder'),
  ('Rhine', 'des Rheins'),
  ('Weser', 'der Weser'),
)

TOPIC = clauses.Topic(
  name='weather',
  sources=(
    clauses.source(
      'the weather service', 'der Wetterdienst', 'dem Wetterdienst'
    ),
    clauses.source('the forecast center', 'das Wetteramt', 'dem Wetteramt'),
  ),
  fillers={
    **fillers.SHARED,
    'high': phrases.quantity('temperature-celsius', 8, 38),
    'low': phrases.quantity('temperature-celsius', -15, 7),
    'snow': phrases.quantity('length-centimeter', 2, 45),
    'rain': phrases.quantity('length-millimeter', 2, 60),
    'speed': phrases.quantity('speed-kilometer-per-hour', 50, 130),
    'pressure': phrases.quantity('pressure-hectopascal', 960, 1010),
    'level': phrases.quantity('length-centimeter', 5, 95),
    'sight': phrases.quantity('length-meter', 20, 300),
    'days': phrases.spelled_quantity('duration-day', 2, 9),
    'direction': phrases.one_of(*_DIRECTIONS),
    'phenomenon': phrases.one_of(*_PHENOMENA),
    'river': phrases.one_of(*_RIVERS),
    'windy': phrases.one_of(
      ('strong', 'starker'),
      ('fresh', 'frischer'),
      ('cold', 'kalter'),
      ('light', 'leichter'),
    ),
    'airy': phrases.one_of(
      ('cold', 'kalte'),
      ('warm', 'warme'),
      ('humid', 'feuchte'),
      ('dry', 'trockene'),
    ),
    'mood': phrases.one_of(
      ('dry', 'trocken'),
      ('cold', 'kalt'),
      ('warm', 'warm'),
      ('humid', 'feucht'),
      ('cloudy', 'bewölkt'),
      ('clear', 'klar'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
