# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Restaurants and recipes."""

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'the restaurant in {city} is serving {dish} for {price} @',
    'das Restaurant in {city} / serviert / @ {dish} für {price} /',
    'present',
  ),
  clauses.Clause(
    'the restaurant in {city} will offer {dish} with {side} @',
    'das Restaurant in {city} / bietet / @ {dish} mit {side} / an+',
    'future',
  ),
  clauses.Clause(
    'the chef will cook {dish} for {dozens} guests @',
    'die Küchenchefin / kocht / @ {dish} für {dozens} Gäste /',
    'future',
  ),
  clauses.Clause(
    'the guests ordered {dish} and {dish2} @',
    'die Gäste / haben / @ {dish} und {dish2} / bestellt',
    'past',
  ),
  clauses.Clause(
    '{few} people need {grams} of {ingredient}',
    '{few} Personen / brauchen / {grams} {ingredient} /',
  ),
  clauses.Clause(
    'the chef mixes {grams} of {ingredient} with {volume} of {liquid}',
    'die Küchenchefin / mischt / {grams} {ingredient} mit {volume.dat} '
    '{liquid} /',
  ),
  clauses.Clause(
    'the kitchen in {city} used {grams} of {ingredient} @',
    'die Küche in {city} / hat / @ {grams} {ingredient} / verbraucht',
    'past',
  ),
  clauses.Clause(
    'the {dish} must be in the oven for {minutes}',
    '{dish.the} / muss / {minutes} lang im Ofen / bleiben',
  ),
  clauses.Clause(
    'the restaurant in {city} is serving {dish} and {dish2} @',
    'das Restaurant in {city} / serviert / @ {dish} und {dish2} /',
    'present',
    held_out=True,
  ),
  clauses.Clause(
    '{dozens} guests ordered {dish} with {side} @',
    '{dozens} Gäste / haben / @ {dish} mit {side} / bestellt',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'the chef will offer {dish} for {price} @',
    'die Küchenchefin / bietet / @ {dish} für {price} / an+',
    'future',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'a kilogram of {ingredient3} costs only {cheap}',
    'ein Kilogramm {ingredient3} / kostet / nur {cheap} /',
  ),
  clauses.Clause(
    'the {dish3} was too {taste}',
    '{dish3.the} / war / zu {taste} /',
  ),
  clauses.Clause(
    'the recipe comes from {country3}',
    'das Rezept / kommt / aus {country3.dat} /',
  ),
  clauses.Clause(
    'many guests prefer {dish3}',
    'viele Gäste / essen / lieber {dish3} /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'the kitchen will need {grams4} of {ingredient4}',
    'die Küche / braucht / {grams4} {ingredient4} /',
  ),
  clauses.Clause(
    'there will be {dish4} for lunch',
    'es / gibt / {dish4} zum Mittagessen /',
  ),
  clauses.Clause(
    'the guests will wait {minutes4} for a table',
    'die Gäste / warten / {minutes4} auf einen Tisch /',
  ),
  clauses.Clause(
    'the restaurant will buy {volume4} of {liquid4}',
    'das Restaurant / kauft / {volume4} {liquid4} /',
  ),
)

_DISHES = (
  ('potato soup', 'Kartoffelsuppe', 'die'),
  ('tomato soup', 'Tomatensuppe', 'die'),
  ('onion soup', 'Zwiebelsuppe', 'die'),
  ('apple cake', 'Apfelkuchen', 'der'),
  ('cheesecake', 'Käsekuchen', 'der'),
  ('plum cake', 'Pflaumenkuchen', 'der'),
  ('goulash', 'Gulasch', 'das'),
  ('roast pork', 'Schweinebraten', 'der'),
  ('trout', 'Forelle', 'die'),
  ('salmon', 'Lachs', 'der'),
  ('lasagna', 'Lasagne', 'die'),
  ('pizza', 'Pizza', 'die'),
)
_INGREDIENTS = (
  ('almonds', 'Mandeln'),
  ('apples', 'Äpfel'),
  ('asparagus', 'Spargel'),
  ('bacon', 'Speck'),
  ('beans', 'Bohnen'),
  ('butter', 'Butter'),
  ('cabbage', 'Kohl'),
  ('carrots', 'Karotten'),
  ('celery', 'Sellerie'),
  ('cherries', 'Kirschen'),
  ('chicken', 'Hähnchenfleisch'),
  ('chocolate', 'Schokolade'),
  ('flour', 'Mehl'),
  ('eggplant', 'Aubergine'),
  ('fennel', 'Fenchel'),
  ('garlic', 'Knoblauch'),
  ('ham', 'Schinken'),
  ('honey', 'Honig'),
  ('leek', 'Lauch'),
  ('lentils', 'Linsen'),
  ('mushrooms', 'Pilze'),
  ('mustard', 'Senf'),
  ('noodles', 'Nudeln'),
  ('nuts', 'Nüsse'),
  ('onions', 'Zwiebeln'),
  ('pears', 'Birnen'),
  ('peas', 'Erbsen'),
  ('peppers', 'Paprika'),
  ('potatoes', 'Kartoffeln'),
  ('pumpkin', 'Kürbis'),
  ('radishes', 'Radieschen'),
  ('raisins', 'Rosinen'),
  ('salt', 'Salz'),
  ('spinach', 'Spinat'),
  ('strawberries', 'Erdbeeren'),
  ('sugar', 'Zucker'),
  ('tomatoes', 'Tomaten'),
)

TOPIC = clauses.Topic(
  name='cooking',
  sources=(
    clauses.source('the newspaper', 'die Zeitung', 'der Zeitung'),
    clauses.source('the hotel manager', 'die Hotelchefin', 'der Hotelchefin'),
    clauses.sources('the neighbors', 'die Nachbarn', 'den Nachbarn'),
  ),
  fillers={
    **fillers.SHARED,
    'dish': phrases.one_phrase_of(
      [
        phrases.phrase(en, de, the=f'{article} {de}')
        for en, de, article in _DISHES
      ]
    ),
    'ingredient': phrases.one_of(*_INGREDIENTS),
    'liquid': phrases.one_of(
      ('milk', 'Milch'),
      ('water', 'Wasser'),
      ('cream', 'Sahne'),
      ('vinegar', 'Essig'),
      ('apple juice', 'Apfelsaft'),
      ('red wine', 'Rotwein'),
      ('broth', 'Brühe'),
    ),
    'side': phrases.one_of(
      ('rice', 'Reis'),
      ('salad', 'Salat'),
      ('bread', 'Brot'),
      ('cream', 'Sahne'),
      ('noodles', 'Nudeln'),
      ('spinach', 'Spinat'),
    ),
    'taste': phrases.one_of(
      ('salty', 'salzig'),
      ('sweet', 'süß'),
      ('cold', 'kalt'),
      ('expensive', 'teuer'),
      ('dry', 'trocken'),
    ),
    'grams': phrases.quantity('mass-gram', 20, 950),
    'volume': phrases.quantity('volume-milliliter', 20, 950),
    'price': phrases.price(4, 40),
    'cheap': phrases.price(1, 9),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
