# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prices in shops."""

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import grammar
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'a {pack} costs {price} in {city} @',
    'ein {pack} / kostet / @ in {city} {price} /',
    'present',
  ),
  clauses.Clause(
    'the price of {product} rose by {percent} @',
    'der Preis für {product} / ist / @ um {percent} / gestiegen',
    'past',
  ),
  clauses.Clause(
    'the price of {product} fell from {range.high} to {range.low} @',
    'der Preis für {product} / ist / @ von {range.high} auf {range.low} '
    '/ [gesunken|gefallen]',
    'past',
  ),
  clauses.Clause(
    'the price of {product} rose from {range.low} to {range.high} @',
    'der Preis für {product} / ist / @ von {range.low} auf {range.high} '
    '/ gestiegen',
    'past',
  ),
  clauses.Clause(
    '{item.a} costs {dear} in {city} @',
    '{item.a_nom} / kostet / @ in {city} {dear} /',
    'present',
  ),
  clauses.Clause(
    'a shop in {city} is selling {item.a} for {dear} @',
    'ein [Geschäft|Laden] in {city} / verkauft / @ {item.a_acc} für {dear} /',
    'present',
  ),
  clauses.Clause(
    'the price of {item.the} was reduced by {percent} @',
    'der Preis {item.the_gen} / wurde / @ um {percent} / gesenkt',
    'past',
  ),
  clauses.Clause(
    'customers in {city} paid {price} for a {pack} @',
    'Kunden in {city} / zahlten / @ {price} für ein {pack} /',
    'past',
  ),
  clauses.Clause(
    'prices in {country} rose by {percent} @',
    'die Preise {country.located} / sind / @ um {percent} / gestiegen',
    'past',
  ),
  clauses.Clause(
    'a customer bought {item.a} in {city} @',
    'eine Kundin / hat / @ in {city} {item.a_acc} / gekauft',
    'past',
  ),
  clauses.Clause(
    'the price of {product} will rise by {percent} @',
    'der Preis für {product} / steigt / @ um {percent} /',
    'future',
  ),
  clauses.Clause(
    'the shops in {city} will lower the price of {item.the} to {dear} @',
    'die Geschäfte in {city} / senken / @ den Preis {item.the_gen} auf '
    '{dear} /',
    'future',
  ),
  clauses.Clause(
    'prices in {city} fell by {percent} @',
    'die Preise in {city} / sind / @ um {percent} / gesunken',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'the price of {item.the} rose to {dear} in {city} @',
    'der Preis {item.the_gen} / ist / @ in {city} auf {dear} / gestiegen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'customers in {country} paid {dear} for {item.a} @',
    'Kunden {country.located} / zahlten / @ {dear} für {item.a_acc} /',
    'past',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'demand has risen by {percent2}',
    'die Nachfrage / ist / um {percent2} / gestiegen',
  ),
  clauses.Clause(
    'the harvest in {country2} was poor',
    'die Ernte {country2.located} / war / schlecht /',
  ),
  clauses.Clause(
    'transport has become more expensive',
    'der Transport / ist / teurer / geworden',
  ),
  clauses.Clause(
    'wages in {country2} have risen by {percent2}',
    'die Löhne {country2.located} / sind / um {percent2} / gestiegen',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'many customers are buying less',
    'viele Kunden / kaufen / weniger / ein+',
  ),
  clauses.Clause(
    'the offer is valid until {date}',
    'das Angebot / gilt / bis zum {date} /',
  ),
  clauses.Clause(
    'the price could rise by another {percent3}',
    'der Preis / könnte / um weitere {percent3} / steigen',
  ),
  clauses.Clause(
    'delivery costs {price3}',
    'die Lieferung / kostet / {price3} /',
  ),
  clauses.Clause(
    '{dozens} shops in {city3} will lower their prices',
    '{dozens} Geschäfte in {city3} / senken / ihre Preise /',
  ),
)

_PRODUCTS = (
  ('bread', 'Brot'),
  ('butter', 'Butter'),
  ('cheese', 'Käse'),
  ('coffee', 'Kaffee'),
  ('fish', 'Fisch'),
  ('flour', 'Mehl'),
  ('milk', 'Milch'),
  ('olive oil', 'Olivenöl'),
  ('rice', 'Reis'),
  ('sugar', 'Zucker'),
  ('tea', 'Tee'),
)
_PACKS = (
  ('kilogram of coffee', 'Kilogramm Kaffee'),
  ('kilogram of flour', 'Kilogramm Mehl'),
  ('kilogram of rice', 'Kilogramm Reis'),
  ('kilogram of cheese', 'Kilogramm Käse'),
  ('kilogram of fish', 'Kilogramm Fisch'),
  ('kilogram of sugar', 'Kilogramm Zucker'),
  ('liter of milk', 'Liter Milch'),
  ('liter of olive oil', 'Liter Olivenöl'),
  ('pound of butter', 'Pfund Butter'),
  ('pound of bread', 'Pfund Brot'),
  ('pound of tea', 'Pfund Tee'),
)
_NOUNS = (
  ('bicycle', grammar.Noun('Fahrrad', 'n')),
  ('table', grammar.Noun('Tisch', 'm', 'Tisches')),
  ('lamp', grammar.Noun('Lampe', 'f')),
  ('cell phone', grammar.Noun('Handy', 'n')),
  ('camera', grammar.Noun('Kamera', 'f')),
  ('refrigerator', grammar.Noun('Kühlschrank', 'm')),
  ('washing machine', grammar.Noun('Waschmaschine', 'f')),
  ('coat', grammar.Noun('Mantel', 'm')),
  ('umbrella', grammar.Noun('Regenschirm', 'm')),
  ('armchair', grammar.Noun('Sessel', 'm')),
  ('piano', grammar.Noun('Klavier', 'n')),
)
_ADJECTIVES = (
  ('new', 'neu'),
  ('old', 'alt'),
  ('used', 'gebraucht'),
  ('small', 'klein'),
  ('large', 'groß'),
  ('white', 'weiß'),
  ('black', 'schwarz'),
  ('modern', 'modern'),
  ('inexpensive', 'günstig'),
)

ITEM = phrases.one_phrase_of(
  [
    phrases.noun(en, word, en_adjective, adjective)
    for en, word in _NOUNS
    for en_adjective, adjective in _ADJECTIVES
  ]
)

TOPIC = clauses.Topic(
  name='prices',
  sources=(
    clauses.source(
      'the consumer association',
      'der Verbraucherverband',
      'dem Verbraucherverband',
    ),
    clauses.source(
      'the statistics office', 'das Statistikamt', 'dem Statistikamt'
    ),
    clauses.sources('traders', 'Händler', 'Händlern'),
  ),
  fillers={
    **fillers.SHARED,
    'product': phrases.one_of(*_PRODUCTS),
    'pack': phrases.one_of(*_PACKS),
    'item': ITEM,
    'dear': phrases.price(60, 1900),
    'range': phrases.price_range(1, 15),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
