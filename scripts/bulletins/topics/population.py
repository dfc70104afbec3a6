# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Figures about people and cities."""

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import phrases
from scripts.bulletins.topics import prices

_FACTS = (
  clauses.Clause(
    '{people} people live in {city} @',
    '{people} Menschen / leben / @ in {city} /',
    'period',
  ),
  clauses.Clause(
    'the population of {city} grew by {percent} @',
    'die Bevölkerung von {city} / ist / @ um {percent} / gewachsen',
    'past',
  ),
  clauses.Clause(
    '{people} guests visited {city} @',
    '{people} Gäste / haben / @ {city} / besucht',
    'past',
  ),
  clauses.Clause(
    'unemployment in {country} fell to {percent} @',
    'die Arbeitslosigkeit {country.located} / ist / @ auf {percent} '
    '/ [gesunken|gefallen]',
    'past',
  ),
  clauses.Clause(
    '{births} children were born in {city} @',
    '{births} Kinder / wurden / @ in {city} / geboren',
    'past',
  ),
  clauses.Clause(
    'the city of {city} will build {births} apartments @',
    'die Stadt {city} / baut / @ {births} Wohnungen /',
    'future',
  ),
  clauses.Clause(
    'the average rent in {city} is {rent} per square meter @',
    'die Durchschnittsmiete in {city} / liegt / @ bei {rent} pro '
    'Quadratmeter /',
    'period',
  ),
  clauses.Clause(
    'every {ordinal} household in {country} owns {item.a}',
    'jeder {ordinal} Haushalt {country.located} / besitzt / {item.a_acc} /',
  ),
  clauses.Clause(
    'the average age in {city} is {age} @',
    'das Durchschnittsalter in {city} / liegt / @ bei {age.dat} /',
    'period',
  ),
  clauses.Clause(
    'rents in {city} rose by {percent} @',
    'die Mieten in {city} / sind / @ um {percent} / gestiegen',
    'past',
  ),
  clauses.Clause(
    'the population of {city} grew to {people} people @',
    'die Bevölkerung von {city} / ist / @ auf {people} Menschen / gewachsen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'every {ordinal} apartment in {city} is empty @',
    'jede {ordinal} Wohnung in {city} / steht / @ / leer',
    'period',
    held_out=True,
  ),
  clauses.Clause(
    '{births} guests from {country} visited {city} @',
    '{births} Gäste aus {country.dat} / haben / @ {city} / besucht',
    'past',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'more families from {country3} are moving to {city3}',
    'mehr Familien aus {country3.dat} / ziehen / nach {city3} /',
  ),
  clauses.Clause(
    'new companies have created {jobs} jobs',
    'neue Unternehmen / haben / {jobs} Arbeitsplätze / geschaffen',
  ),
  clauses.Clause(
    'rents in {city3} are lower',
    'die Mieten in {city3} / sind / niedriger /',
  ),
  clauses.Clause(
    'every {ordinal3} apartment in {city3} was empty',
    'jede {ordinal3} Wohnung in {city3} / war / leer /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'the city is planning {few3} new schools',
    'die Stadt / plant / {few3} neue Schulen /',
  ),
  clauses.Clause(
    'the next census will take place {date.on}',
    'die nächste Volkszählung / findet / {date.on} / statt+',
  ),
  clauses.Clause(
    'the city will hire {dozens3} teachers',
    'die Stadt / stellt / {dozens3} Lehrkräfte / ein+',
  ),
  clauses.Clause(
    '{jobs3} jobs will be created in {city4}',
    '{jobs3} Arbeitsplätze / werden / in {city4} / geschaffen',
  ),
)

TOPIC = clauses.Topic(
  name='population',
  sources=(
    clauses.source(
      'the statistics office', 'das Statistikamt', 'dem Statistikamt'
    ),
    clauses.source('the mayor', 'die Bürgermeisterin', 'der Bürgermeisterin'),
    clauses.sources('researchers', 'Forscher', 'Forschern'),
  ),
  fillers={
    **fillers.SHARED,
    'people': phrases.whole_number(20100, 1990000, 100),
    'births': phrases.whole_number(120, 4900, 10),
    'jobs': phrases.whole_number(150, 9500, 50),
    'rent': phrases.price(6, 24),
    'age': phrases.quantity('duration-year', 36, 49, 1),
    'item': prices.ITEM,
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
