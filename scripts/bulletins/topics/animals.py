# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Zoos and farms."""

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    '{few} young {animals} were born in the zoo in {city} @',
    '{few} junge {animals} / wurden / @ im Zoo in {city} / geboren',
    'past',
  ),
  clauses.Clause(
    'the zoo in {city} will buy {few} {animals} @',
    'der Zoo in {city} / kauft / @ {few} {animals} /',
    'future',
  ),
  clauses.Clause(
    'researchers counted {herd} {animals} in {country} @',
    'Forscher / haben / @ {country.located} {herd} {animals} / gezählt',
    'past',
  ),
  clauses.Clause(
    'a farmer near {city} sold {dozens} {animals} @',
    'eine Bäuerin bei {city} / hat / @ {dozens} {animals} / verkauft',
    'past',
  ),
  clauses.Clause(
    'the {animals} in the zoo in {city} eat {feed} of {food} per day',
    'die {animals} im Zoo in {city} / fressen / {feed} {food} pro Tag /',
  ),
  clauses.Clause(
    '{few} {animals} escaped from the zoo in {city} @',
    '{few} {animals} / sind / @ aus dem Zoo in {city} / entkommen',
    'past',
  ),
  clauses.Clause(
    'the zoo in {city} will show {dozens} {animals} and {animals2} @',
    'der Zoo in {city} / zeigt / @ {dozens} {animals} und {animals2} /',
    'future',
  ),
  clauses.Clause(
    '{dozens} {animals} will move from {city} to {country} @',
    '{dozens} {animals} / ziehen / @ von {city} {country.to} / um+',
    'future',
  ),
  clauses.Clause(
    '{few} {animals} and {few2} {animals2} escaped near {city} @',
    '{few} {animals} und {few2} {animals2} / sind / @ bei {city} / entkommen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'a farmer near {city} will buy {dozens} young {animals} @',
    'eine Bäuerin bei {city} / kauft / @ {dozens} junge {animals} /',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    'researchers counted {herd} young {animals} near {city} @',
    'Forscher / haben / @ bei {city} {herd} junge {animals} / gezählt',
    'past',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'the enclosure of the {animals3} was too {cramped}',
    'das Gehege der {animals3} / war / zu {cramped} /',
  ),
  clauses.Clause(
    'a storm has damaged the fence',
    'ein Sturm / hat / den Zaun / beschädigt',
  ),
  clauses.Clause(
    'the veterinarian has examined the {animals3}',
    'die Tierärztin / hat / die {animals3} / untersucht',
  ),
  clauses.Clause(
    'the {animals3} are healthy again',
    'die {animals3} / sind / wieder gesund /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'visitors can see the {animals4} from {time}',
    'Besucher / können / die {animals4} ab {time} / sehen',
  ),
  clauses.Clause(
    'the feeding of the {animals4} will begin at {time}',
    'die Fütterung der {animals4} / beginnt / um {time} /',
  ),
  clauses.Clause(
    'the {animals4} will need {feed4} of {food4}',
    'die {animals4} / brauchen / {feed4} {food4} /',
  ),
  clauses.Clause(
    'the path to the {animals4} will stay closed until {date}',
    'der Weg zu den {animals4.dat} / bleibt / bis zum {date} / geschlossen',
  ),
)

_ANIMALS = (
  ('lions', 'Löwen'),
  ('tigers', 'Tiger'),
  ('elephants', 'Elefanten'),
  ('penguins', 'Pinguine'),
  ('monkeys', 'Affen'),
  ('giraffes', 'Giraffen'),
  ('camels', 'Kamele'),
  ('wolves', 'Wölfe'),
  ('foxes', 'Füchse'),
  ('bears', 'Bären'),
  ('goats', 'Ziegen'),
  ('sheep', 'Schafe'),
  ('cows', 'Kühe'),
  ('horses', 'Pferde'),
  ('donkeys', 'Esel'),
  ('pigs', 'Schweine'),
  ('geese', 'Gänse'),
  ('ducks', 'Enten'),
  ('owls', 'Eulen'),
  ('eagles', 'Adler'),
  ('storks', 'Störche'),
  ('turtles', 'Schildkröten'),
  ('snakes', 'Schlangen'),
  ('hedgehogs', 'Igel'),
  ('zebras', 'Zebras'),
  ('kangaroos', 'Kängurus'),
  ('squirrels', 'Eichhörnchen'),
  ('beavers', 'Biber'),
  ('crocodiles', 'Krokodile'),
  ('flamingos', 'Flamingos'),
  ('leopards', 'Leoparden'),
  ('parrots', 'Papageien'),
  ('rabbits', 'Kaninchen'),
  ('swans', 'Schwäne'),
)

TOPIC = clauses.Topic(
  name='animals',
  sources=(
    clauses.source('the zoo', 'der Zoo', 'dem Zoo'),
    clauses.source('the veterinarian', 'die Tierärztin', 'der Tierärztin'),
    clauses.source('the ministry', 'das Ministerium', 'dem Ministerium'),
  ),
  fillers={
    **fillers.SHARED,
    'animals': phrases.plurals(*_ANIMALS),
    'herd': phrases.whole_number(110, 9900, 10),
    'feed': phrases.quantity('mass-kilogram', 5, 400),
    'food': phrases.one_of(
      ('hay', 'Heu'),
      ('meat', 'Fleisch'),
      ('fish', 'Fisch'),
      ('fruit', 'Obst'),
      ('vegetables', 'Gemüse'),
      ('grass', 'Gras'),
    ),
    'cramped': phrases.one_of(
      ('small', 'klein'),
      ('cold', 'kalt'),
      ('dark', 'dunkel'),
      ('wet', 'nass'),
      ('narrow', 'eng'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
