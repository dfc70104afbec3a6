# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""People, their work and their days."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import forms
from scripts.bulletins import grammar
from scripts.bulletins import phrases
from scripts.bulletins.topics import prices

_FACTS = (
  clauses.Clause(
    '{person} will open a shop in {city} @',
    '{person.nom} / eröffnet / @ in {city} ein Geschäft /',
    'future',
  ),
  clauses.Clause(
    '{person} won {dear} in the lottery @',
    '{person.nom} / hat / @ {dear} im Lotto / gewonnen',
    'past',
  ),
  clauses.Clause(
    '{person} celebrated the {birthday} birthday of {person2} @',
    '{person.nom} / hat / @ den {birthday} Geburtstag {person2.gen} / gefeiert',
    'past',
  ),
  clauses.Clause(
    '{person} moved from {city} to {city2} @',
    '{person.nom} / ist / @ von {city} nach {city2} / gezogen',
    'past',
  ),
  clauses.Clause(
    '{person} bought {item.a} for {dear} @',
    '{person.nom} / hat / @ für {dear} {item.a_acc} / gekauft',
    'past',
  ),
  clauses.Clause(
    '{person} is looking for {item.a} in {city} @',
    '{person.nom} / sucht / @ in {city} {item.a_acc} /',
    'present',
  ),
  clauses.Clause(
    '{person} will retire @',
    '{person.nom} / geht / @ in Rente /',
    'future',
  ),
  clauses.Clause(
    '{person} met {person2} in {city} @',
    '{person.nom} / hat / @ {person2.acc} in {city} / getroffen',
    'past',
  ),
  clauses.Clause(
    '{person} works {duration} per day @',
    '{person.nom} / arbeitet / @ {duration} pro Tag /',
    'period',
  ),
  clauses.Clause(
    '{person} will travel to {country} with {person2} @',
    '{person.nom} / reist / @ mit {person2.dat} {country.to} /',
    'future',
  ),
  clauses.Clause(
    '{person} moved to {country} with {person2} @',
    '{person.nom} / ist / @ mit {person2.dat} {country.to} / gezogen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    '{person} will open a shop with {person2} @',
    '{person.nom} / eröffnet / @ mit {person2.dat} ein Geschäft /',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    '{person} celebrated the {birthday} birthday of {person2} in {city} @',
    '{person.nom} / hat / @ in {city} den {birthday} Geburtstag '
    '{person2.gen} / gefeiert',
    'past',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'the old apartment was too {cramped}',
    'die alte Wohnung / war / zu {cramped} /',
  ),
  clauses.Clause(
    'the family comes from {country3}',
    'die Familie / kommt / aus {country3.dat} /',
  ),
  clauses.Clause(
    '{person3} had a good idea',
    '{person3.nom} / hatte / eine gute Idee /',
  ),
  clauses.Clause(
    'work now begins at {time3}',
    'die Arbeit / beginnt / jetzt um {time3} /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'friends are planning a party with {dozens} guests',
    'Freunde / planen / ein Fest mit {dozens} Gästen /',
  ),
  clauses.Clause(
    'a newspaper will report on it {date.on}',
    'eine Zeitung / berichtet / {date.on} darüber /',
  ),
  clauses.Clause(
    '{person4} will help in {city4}',
    '{person4.nom} / hilft / in {city4} / mit+',
  ),
  clauses.Clause(
    '{person4} wants to learn {language}',
    '{person4.nom} / will / {language} / lernen',
  ),
)

# Occupations: English, masculine, feminine; no noun of the n-declension.
_OCCUPATIONS = (
  ('actor', 'Schauspieler', 'Schauspielerin'),
  ('baker', 'Bäcker', 'Bäckerin'),
  ('butcher', 'Metzger', 'Metzgerin'),
  ('carpenter', 'Schreiner', 'Schreinerin'),
  ('cook', 'Koch', 'Köchin'),
  ('dancer', 'Tänzer', 'Tänzerin'),
  ('doctor', 'Arzt', 'Ärztin'),
  ('engineer', 'Ingenieur', 'Ingenieurin'),
  ('gardener', 'Gärtner', 'Gärtnerin'),
  ('hairdresser', 'Friseur', 'Friseurin'),
  ('judge', 'Richter', 'Richterin'),
  ('mechanic', 'Mechaniker', 'Mechanikerin'),
  ('musician', 'Musiker', 'Musikerin'),
  ('painter', 'Maler', 'Malerin'),
  ('pharmacist', 'Apotheker', 'Apothekerin'),
  ('singer', 'Sänger', 'Sängerin'),
  ('tailor', 'Schneider', 'Schneiderin'),
  ('teacher', 'Lehrer', 'Lehrerin'),
  ('writer', 'Schriftsteller', 'Schriftstellerin'),
)
_MEN = (
  'Anton Ben David Emil Felix Georg Hans Jan Jonas Karl Lukas Martin Max '
  'Oskar Paul Peter Simon Stefan Theo Thomas'
).split()
_WOMEN = (
  'Anna Clara Doris Eva Frieda Hanna Helga Ida Julia Karin Laura Lena '
  'Maria Marta Mia Nina Olga Petra Sarah Sofia'
).split()
_SURNAMES = (
  'Ahrens Albrecht Arnold Bauer Beck Bergmann Brandt Busch Dietrich Ebert '
  'Engel Fischer Franke Frank Friedrich Fuchs Geiger Gruber Herrmann Horn '
  'Jansen Kramer Kuhn Ludwig Martens Moser Petersen Pfeiffer Reuter Sander '
  'Schuster Stein Thiele Vogt Walter Wenzel '
  'Graf Haas Hahn Hartmann Hoffmann Huber Jung Kaiser Keller Klein Koch '
  'Krause Lang Lehmann Lorenz Maier Neumann Otto Peters Pohl Roth Sauer '
  'Schmidt Scholz Schubert Schulz Seidel Simon Sommer Vogel Wagner Weber '
  'Winkler Wolf Ziegler Zimmermann'
).split()


def _person(rng: random.Random) -> phrases.Phrase:
  """Draws 'the baker Anna Beck', 'die Bäckerin Anna Beck' by case."""
  english, masculine, feminine = rng.choice(_OCCUPATIONS)
  if rng.random() < 0.5:
    first, noun = rng.choice(_WOMEN), grammar.Noun(feminine, grammar.FEMININE)
  else:
    first, noun = rng.choice(_MEN), grammar.Noun(masculine, grammar.MASCULINE)
  name = f'{first} {rng.choice(_SURNAMES)}'
  cases = {
    case: f'{grammar.definite(noun, case)} {name}' for case in grammar.CASES
  }
  return phrases.phrase(
    f'the {english} {name}', cases[grammar.NOMINATIVE], **cases
  )


def _birthday(rng: random.Random) -> phrases.Phrase:
  """Draws 'thirty-fifth', 'fünfunddreißigsten'."""
  value = rng.randint(20, 99)
  return phrases.phrase(
    forms.ordinal(value, forms.ENGLISH),
    forms.ordinal(value, forms.GERMAN) + 'n',
  )


TOPIC = clauses.Topic(
  name='people',
  sources=(
    clauses.source('the newspaper', 'die Zeitung', 'der Zeitung'),
    clauses.source('the family', 'die Familie', 'der Familie'),
    clauses.sources('neighbors', 'Nachbarn', 'Nachbarn'),
  ),
  fillers={
    **fillers.SHARED,
    'person': _person,
    'birthday': _birthday,
    'dear': phrases.price(100, 9900),
    'item': prices.ITEM,
    'cramped': phrases.one_of(
      ('small', 'klein'),
      ('cold', 'kalt'),
      ('dark', 'dunkel'),
      ('expensive', 'teuer'),
      ('loud', 'laut'),
    ),
    'language': phrases.one_of(
      ('French', 'Französisch'),
      ('Italian', 'Italienisch'),
      ('Japanese', 'Japanisch'),
      ('Swedish', 'Schwedisch'),
      ('Danish', 'Dänisch'),
      ('Polish', 'Polnisch'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
