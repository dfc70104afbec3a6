# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opening hours and events."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import forms
from scripts.bulletins import grammar
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    '{venue.the} in {city} will be open {hours} @',
    '{venue.the_nom} in {city} / ist / @ {hours} / geöffnet',
    'day',
  ),
  clauses.Clause(
    'admission to {venue.the} in {city} costs {price} @',
    'der Eintritt in {venue.the_acc} in {city} / kostet / @ {price} /',
    'present',
  ),
  clauses.Clause(
    '{event.the} in {city} will begin at {time} @',
    '{event.the_nom} in {city} / beginnt / @ um {time} /',
    'day',
  ),
  clauses.Clause(
    '{event.the} will take place in {venue.the} in {city} @',
    '{event.the_nom} / findet / @ {venue.in_the} in {city} / statt+',
    'future',
  ),
  clauses.Clause(
    '{venue.the} in {city} will show {show.a} @',
    '{venue.the_nom} in {city} / zeigt / @ {show.a_acc} /',
    'future',
  ),
  clauses.Clause(
    '{crowd} visitors came to {event.the} in {city} @',
    '{crowd} Besucher / kamen / @ {event.to_the} in {city} /',
    'past',
  ),
  clauses.Clause(
    '{venue.the} in {city} will stay closed @',
    '{venue.the_nom} in {city} / bleibt / @ / geschlossen',
    'future',
  ),
  clauses.Clause(
    'tickets for {event.the} cost between {range.low} and {range.high}',
    'Karten für {event.the_acc} / kosten / zwischen {range.low} und '
    '{range.high} /',
  ),
  clauses.Clause(
    '{crowd} people visited {venue.the} in {city} @',
    '{crowd} Menschen / haben / @ {venue.the_acc} in {city} / besucht',
    'past',
  ),
  clauses.Clause(
    '{event.the} in {venue.the} will begin at {time} @',
    '{event.the_nom} {venue.in_the} / beginnt / @ um {time} /',
    'day',
    held_out=True,
  ),
  clauses.Clause(
    '{crowd} visitors came to {venue.the} in {city} @',
    '{crowd} Besucher / kamen / @ in {venue.the_acc} in {city} /',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'tickets for {event.the} in {city} cost {price} @',
    'Karten für {event.the_acc} in {city} / kosten / @ {price} /',
    'present',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'the building is being renovated',
    'das Gebäude / wird / renoviert /',
  ),
  clauses.Clause(
    'the city is celebrating its {anniversary} birthday',
    'die Stadt / feiert / ihren {anniversary} Geburtstag /',
  ),
  clauses.Clause(
    'the singer from {country} has fallen ill',
    'die Sängerin aus {country.dat} / ist / krank / geworden',
  ),
  clauses.Clause(
    'the schools in {country} are on vacation',
    'die Schulen {country.located} / haben / Ferien /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'children under {few} will not have to pay',
    'Kinder unter {few} Jahren / müssen / nicht / zahlen',
  ),
  clauses.Clause(
    'tickets are available until {date}',
    'Karten / sind / bis zum {date} / erhältlich',
  ),
  clauses.Clause(
    'the organizers expect {crowd3} visitors',
    'die Veranstalter / erwarten / {crowd3} Besucher /',
  ),
  clauses.Clause(
    'the program will last {length}',
    'das Programm / dauert / {length} /',
  ),
  clauses.Clause(
    '{few} additional guided tours will take place {date.on}',
    '{few} zusätzliche Führungen / finden / {date.on} / statt+',
  ),
)

_VENUES = (
  phrases.noun('museum', grammar.Noun('Museum', 'n')),
  phrases.noun('theater', grammar.Noun('Theater', 'n')),
  phrases.noun('library', grammar.Noun('Bibliothek', 'f')),
  phrases.noun('zoo', grammar.Noun('Zoo', 'm')),
  phrases.noun('castle', grammar.Noun('Schloss', 'n', 'Schlosses')),
  phrases.noun('cathedral', grammar.Noun('Dom', 'm')),
  phrases.noun('town hall', grammar.Noun('Rathaus', 'n', 'Rathauses')),
  phrases.noun('market hall', grammar.Noun('Markthalle', 'f')),
  phrases.noun('old opera', grammar.Noun('Oper', 'f'), '', 'alt'),
  phrases.noun('new cinema', grammar.Noun('Kino', 'n'), '', 'neu'),
  phrases.noun(
    'botanical garden', grammar.Noun('Garten', 'm'), '', 'botanisch'
  ),
)
_EVENTS = (
  phrases.noun('concert', grammar.Noun('Konzert', 'n')),
  phrases.noun('festival', grammar.Noun('Festival', 'n')),
  phrases.noun('exhibition', grammar.Noun('Ausstellung', 'f')),
  phrases.noun('lecture', grammar.Noun('Vortrag', 'm')),
  phrases.noun('trade fair', grammar.Noun('Messe', 'f')),
  phrases.noun('reading', grammar.Noun('Lesung', 'f')),
  phrases.noun('guided tour', grammar.Noun('Führung', 'f')),
  phrases.noun('flea market', grammar.Noun('Flohmarkt', 'm')),
)
_SHOWS = tuple(
  phrases.noun(en, word, en_adjective, adjective)
  for en, word in (
    ('film', grammar.Noun('Film', 'm')),
    ('exhibition', grammar.Noun('Ausstellung', 'f')),
    ('play', grammar.Noun('Theaterstück', 'n')),
    ('opera', grammar.Noun('Oper', 'f')),
    ('picture', grammar.Noun('Bild', 'n', 'Bildes')),
  )
  for en_adjective, adjective in (
    ('new', 'neu'),
    ('famous', 'berühmt'),
    ('modern', 'modern'),
    ('French', 'französisch'),
    ('Italian', 'italienisch'),
    ('small', 'klein'),
  )
)


def _anniversary(rng: random.Random) -> phrases.Phrase:
  """Draws 'fiftieth' or 'fünfzigsten', after a masculine 'ihren'."""
  value = rng.choice((20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 100, 1000))
  return phrases.phrase(
    forms.ordinal(value, forms.ENGLISH),
    forms.ordinal(value, forms.GERMAN) + 'n',
  )


TOPIC = clauses.Topic(
  name='events',
  sources=(
    clauses.sources('the organizers', 'die Veranstalter', 'den Veranstaltern'),
    clauses.source('the city council', 'der Stadtrat', 'dem Stadtrat'),
  ),
  fillers={
    **fillers.SHARED,
    'venue': phrases.one_phrase_of(_VENUES),
    'event': phrases.one_phrase_of(_EVENTS),
    'show': phrases.one_phrase_of(_SHOWS),
    'crowd': phrases.whole_number(150, 25000, 50),
    'range': phrases.price_range(8, 90),
    'price': phrases.price(3, 60),
    'length': phrases.spelled_quantity('duration-hour', 2, 9),
    'anniversary': _anniversary,
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
