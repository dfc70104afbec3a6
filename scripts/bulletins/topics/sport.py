# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Matches and races."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import forms
from scripts.bulletins import grammar
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    '{city} won {victory} against {city2} @',
    '{city} / hat / @ gegen {city2} mit {victory} / gewonnen',
    'past',
  ),
  clauses.Clause(
    '{city} lost {defeat} against {city2} @',
    '{city} / hat / @ gegen {city2} mit {defeat} / verloren',
    'past',
  ),
  clauses.Clause(
    '{city} and {city2} drew {draw} @',
    '{city} und {city2} / haben / @ {draw} / gespielt',
    'past',
  ),
  clauses.Clause(
    'a runner from {country} won the race over {distance} in {city} @',
    'eine Läuferin aus {country.dat} / hat / @ in {city} das Rennen '
    'über {distance} / gewonnen',
    'past',
  ),
  clauses.Clause(
    'the team from {city} is in {ordinal} place @',
    'die Mannschaft aus {city} / steht / @ auf dem {ordinal.n} Platz /',
    'present',
  ),
  clauses.Clause(
    '{crowd} spectators saw the match in {city} @',
    '{crowd} Zuschauer / haben / @ das Spiel in {city} / gesehen',
    'past',
  ),
  clauses.Clause(
    'the match between {city} and {city2} will begin at {time} @',
    'das Spiel zwischen {city} und {city2} / beginnt / @ um {time} /',
    'day',
  ),
  clauses.Clause(
    'the club from {city} will pay {millions} euros for {player.a} @',
    'der Verein aus {city} / zahlt / @ {millions} Euro für {player.a_acc} /',
    'future',
  ),
  clauses.Clause(
    'the team from {city} won for the {ordinal} time in a row @',
    'die Mannschaft aus {city} / hat / @ zum {ordinal.n} Mal in Folge '
    '/ gewonnen',
    'past',
  ),
  clauses.Clause(
    '{player.a} from {city} scored {few} goals @',
    '{player.a_nom} aus {city} / hat / @ {few} Tore / geschossen',
    'past',
  ),
  clauses.Clause(
    'the team from {city} won {victory} for the {ordinal} time @',
    'die Mannschaft aus {city} / hat / @ zum {ordinal.n} Mal mit '
    '{victory} / gewonnen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    '{crowd} spectators saw the race over {distance} in {city} @',
    '{crowd} Zuschauer / haben / @ in {city} das Rennen über {distance} '
    '/ gesehen',
    'past',
    held_out=True,
  ),
  clauses.Clause(
    'the race over {distance} in {city} will begin at {time} @',
    'das Rennen über {distance} in {city} / beginnt / @ um {time} /',
    'day',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    '{player3.the} is injured',
    '{player3.the_nom} / ist / verletzt /',
  ),
  clauses.Clause(
    '{player3.the} made {few3} mistakes',
    '{player3.the_nom} / hat / {few3} Fehler / gemacht',
  ),
  clauses.Clause(
    'the team trained for {weeks} in {country3}',
    'die Mannschaft / hat / {weeks} lang {country3.located} / trainiert',
  ),
  clauses.Clause(
    '{player3.the} is in good form',
    '{player3.the_nom} / ist / in guter Form /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'the next match will take place {date.on}',
    'das nächste Spiel / findet / {date.on} / statt+',
  ),
  clauses.Clause(
    'tickets are available from {price}',
    'Karten / sind / ab {price} / erhältlich',
  ),
  clauses.Clause(
    'the club is looking for {player4.a}',
    'der Verein / sucht / {player4.a_acc} /',
  ),
  clauses.Clause(
    'the stadium will be sold out',
    'das Stadion / wird / ausverkauft / sein',
  ),
  clauses.Clause(
    'the fans in {city3} are {glad}',
    'die Fans in {city3} / sind / {glad} /',
  ),
)

_PLAYERS = tuple(
  phrases.noun(en, word, en_adjective, adjective)
  for en, word in (
    ('goalkeeper', grammar.Noun('Torwart', 'm')),
    ('captain', grammar.Noun('Kapitän', 'm')),
    ('defender', grammar.Noun('Verteidigerin', 'f')),
    ('striker', grammar.Noun('Stürmerin', 'f')),
  )
  for en_adjective, adjective in (
    ('new', 'neu'),
    ('young', 'jung'),
    ('experienced', 'erfahren'),
    ('French', 'französisch'),
    ('Italian', 'italienisch'),
  )
)


def _score(first: int, second: int) -> phrases.Phrase:
  return phrases.phrase(f'{first}-{second}', f'{first}:{second}')


def _victory(rng: random.Random) -> phrases.Phrase:
  """Draws '3-1', '3:1'."""
  goals = rng.randint(0, 4)
  return _score(goals + rng.randint(1, 3), goals)


def _defeat(rng: random.Random) -> phrases.Phrase:
  """Draws '1-3', '1:3'."""
  goals = rng.randint(0, 4)
  return _score(goals, goals + rng.randint(1, 3))


def _draw(rng: random.Random) -> phrases.Phrase:
  """Draws '2-2', '2:2'."""
  goals = rng.randint(0, 5)
  return _score(goals, goals)


def _millions(rng: random.Random) -> phrases.Phrase:
  """Draws '12.5 million', '12,5 Millionen', more than one."""
  value = rng.randint(11, 399) / 10
  return phrases.both(lambda locale: forms.millions(value, locale))


TOPIC = clauses.Topic(
  name='sport',
  sources=(
    clauses.source('the club', 'der Verein', 'dem Verein'),
    clauses.source('the association', 'der Verband', 'dem Verband'),
    clauses.sources('the organizers', 'die Veranstalter', 'den Veranstaltern'),
  ),
  fillers={
    **fillers.SHARED,
    'victory': _victory,
    'defeat': _defeat,
    'draw': _draw,
    'distance': phrases.quantity('length-kilometer', 3, 50),
    'crowd': phrases.whole_number(1500, 80000, 100),
    'millions': _millions,
    'player': phrases.one_phrase_of(_PLAYERS),
    'price': phrases.price(9, 60),
    'weeks': phrases.spelled_quantity('duration-week', 2, 9),
    'glad': phrases.one_of(
      ('satisfied', 'zufrieden'),
      ('disappointed', 'enttäuscht'),
      ('excited', 'begeistert'),
    ),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
