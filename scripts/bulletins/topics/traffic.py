# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Road reports."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import grammar
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'there will be a traffic jam of {jam} on the {road} @',
    'es / gibt / @ auf der {road} einen Stau von {jam.dat} /',
    'future',
  ),
  clauses.Clause(
    'the {road} will be closed between {city} and {city2} @',
    'die {road} / wird / @ zwischen {city} und {city2} / gesperrt',
    'future',
  ),
  clauses.Clause(
    'a speed limit of {speed} will apply on the {road} @',
    'ein Tempolimit von {speed.dat} / gilt / @ auf der {road} /',
    'future',
  ),
  clauses.Clause(
    'the bridge in {city} will be closed to trucks over {weight} @',
    'die Brücke in {city} / wird / @ für Lastwagen über {weight} / gesperrt',
    'future',
  ),
  clauses.Clause(
    '{few} cars collided on the {road} near {city} @',
    '{few} Autos / sind / @ auf der {road} bei {city} / zusammengestoßen',
    'past',
  ),
  clauses.Clause(
    '{few} people were injured in an accident on the {road} @',
    '{few} Menschen / wurden / @ bei einem Unfall auf der {road} / verletzt',
    'past',
  ),
  clauses.Clause(
    'parking in the center of {city} will cost {price} per hour @',
    'das Parken im Zentrum von {city} / kostet / @ {price} pro Stunde /',
    'future',
  ),
  clauses.Clause(
    'the police stopped {dozens} drivers in {city} @',
    'die Polizei / hat / @ in {city} {dozens} Fahrer / angehalten',
    'past',
  ),
  clauses.Clause(
    '{vehicle.a} collided with {vehicle2.a} in {city} @',
    '{vehicle.a_nom} / ist / @ in {city} mit {vehicle2.a_dat} '
    '/ zusammengestoßen',
    'past',
  ),
  clauses.Clause(
    'the police will close the {road} near {city} @',
    'die Polizei / sperrt / @ die {road} bei {city} /',
    'future',
  ),
  clauses.Clause(
    '{vehicle.a} collided with {few} cars on the {road} @',
    '{vehicle.a_nom} / ist / @ auf der {road} mit {few} Autos '
    '/ zusammengestoßen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'the bridge between {city} and {city2} will be closed @',
    'die Brücke zwischen {city} und {city2} / wird / @ / gesperrt',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    'the police stopped {vehicle.a} on the {road} @',
    'die Polizei / hat / @ auf der {road} {vehicle.a_acc} / angehalten',
    'past',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'a truck has lost {load} of {cargo}',
    'ein Lastwagen / hat / {load} {cargo} / verloren',
  ),
  clauses.Clause(
    'workers are renewing the road over {jam2}',
    'Arbeiter / erneuern / die Straße auf {jam2.dat} /',
  ),
  clauses.Clause(
    '{vehicle3.a} has broken down near {city3}',
    '{vehicle3.a_nom} / ist / bei {city3} / liegen geblieben',
  ),
  clauses.Clause(
    'the road near {city3} is {slippery}',
    'die Straße bei {city3} / ist / {slippery} /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'drivers should take the exit to {city3}',
    '[Autofahrer|Fahrer] / sollten / die Ausfahrt nach {city3} / nehmen',
  ),
  clauses.Clause(
    'the work will last until {date}',
    'die Arbeiten / dauern / bis zum {date} /',
  ),
  clauses.Clause(
    'drivers should allow {minutes} more',
    '[Autofahrer|Fahrer] / sollten / {minutes} mehr / einplanen',
  ),
  clauses.Clause(
    'the detour is {detour} long',
    'die Umleitung / ist / {detour} lang /',
  ),
  clauses.Clause(
    'the fine is {fine}',
    'das Bußgeld / beträgt / {fine} /',
  ),
)

_VEHICLES = (
  phrases.noun('truck', grammar.Noun('Lastwagen', 'm'), 'red', 'rot'),
  phrases.noun('truck', grammar.Noun('Lastwagen', 'm'), 'heavy', 'schwer'),
  phrases.noun('bus', grammar.Noun('Bus', 'm', 'Busses'), 'old', 'alt'),
  phrases.noun('bus', grammar.Noun('Bus', 'm', 'Busses'), 'yellow', 'gelb'),
  phrases.noun('car', grammar.Noun('Auto', 'n'), 'small', 'klein'),
  phrases.noun('car', grammar.Noun('Auto', 'n'), 'red', 'rot'),
  phrases.noun(
    'motorcycle', grammar.Noun('Motorrad', 'n', 'Motorrads'), 'black', 'schwarz'
  ),
  phrases.noun(
    'motorcycle', grammar.Noun('Motorrad', 'n', 'Motorrads'), 'heavy', 'schwer'
  ),
  phrases.noun('streetcar', grammar.Noun('Straßenbahn', 'f'), 'empty', 'leer'),
  phrases.noun('streetcar', grammar.Noun('Straßenbahn', 'f'), 'yellow', 'gelb'),
  phrases.noun('ambulance', grammar.Noun('Krankenwagen', 'm'), 'white', 'weiß'),
)


def _road(rng: random.Random) -> phrases.Phrase:
  """Draws 'A 8' or 'B 27': German roads are feminine."""
  name = f'{rng.choice("AB")} {rng.randint(1, 99)}'
  return phrases.phrase(name, name)


TOPIC = clauses.Topic(
  name='traffic',
  sources=(
    clauses.police(),
    clauses.source('the city council', 'der Stadtrat', 'dem Stadtrat'),
    clauses.source(
      'the automobile club', 'der Automobilclub', 'dem Automobilclub'
    ),
  ),
  fillers={
    **fillers.SHARED,
    'road': _road,
    'vehicle': phrases.one_phrase_of(_VEHICLES),
    'jam': phrases.quantity('length-kilometer', 2, 30),
    'detour': phrases.quantity('length-kilometer', 1.5, 30, 1),
    'speed': phrases.quantity('speed-kilometer-per-hour', 30, 120),
    'weight': phrases.quantity('mass-tonne', 2, 40),
    'load': phrases.quantity('mass-kilogram', 20, 900),
    'fine': phrases.price(15, 600),
    'cargo': phrases.one_of(
      ('sand', 'Sand'),
      ('milk', 'Milch'),
      ('flour', 'Mehl'),
      ('paper', 'Papier'),
      ('wood', 'Holz'),
    ),
    'slippery': phrases.one_of(
      ('icy', 'vereist'),
      ('wet', 'nass'),
      ('blocked', 'blockiert'),
      ('narrow', 'eng'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
