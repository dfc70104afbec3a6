# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Railway announcements."""

import random

from scripts.bulletins import clauses
from scripts.bulletins import fillers
from scripts.bulletins import phrases

_FACTS = (
  clauses.Clause(
    'the {train} to {city} will be {minutes} late @',
    'der {train} nach {city} / hat / @ {minutes} / Verspätung',
    'day',
  ),
  clauses.Clause(
    'the {train} from {city} to {city2} will be canceled @',
    'der {train} von {city} nach {city2} / fällt / @ / aus+',
    'future',
  ),
  clauses.Clause(
    'the {train} to {city} departs from platform {platform} at {time} @',
    'der {train} nach {city} / fährt / @ um {time} von Gleis {platform} / ab+',
    'day',
  ),
  clauses.Clause(
    'the {train} from {city} arrives at platform {platform} at {time} @',
    'der {train} aus {city} / kommt / @ um {time} auf Gleis {platform} / an+',
    'day',
  ),
  clauses.Clause(
    '{few} buses will replace the trains between {city} and {city2} @',
    '{few} Busse / ersetzen / @ die Züge zwischen {city} und {city2} /',
    'future',
  ),
  clauses.Clause(
    'the line between {city} and {city2} will be closed @',
    'die Strecke zwischen {city} und {city2} / wird / @ / gesperrt',
    'future',
  ),
  clauses.Clause(
    'the journey from {city} to {city2} will take {duration} @',
    'die Fahrt von {city} nach {city2} / dauert / @ {duration} /',
    'future',
  ),
  clauses.Clause(
    'passengers to {city} will have to change trains in {city2} @',
    'Fahrgäste nach {city} / müssen / @ in {city2} / umsteigen',
    'future',
  ),
  clauses.Clause(
    'the {train} to {city} will also stop in {city2} @',
    'der {train} nach {city} / hält / @ auch in {city2} /',
    'future',
  ),
  clauses.Clause(
    'the {train} will be canceled between {city} and {city2} @',
    'der {train} / fällt / @ zwischen {city} und {city2} / aus+',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    'the journey to {city} will take {minutes} @',
    'die Fahrt nach {city} / dauert / @ {minutes} /',
    'future',
    held_out=True,
  ),
  clauses.Clause(
    'the {train} from {city} departs for {city2} at {time} @',
    'der {train} aus {city} / fährt / @ um {time} nach {city2} / ab+',
    'day',
    held_out=True,
  ),
)
_REASONS = (
  clauses.Clause(
    'the track near {city3} is currently being repaired',
    'das Gleis bei {city3} / wird / derzeit / repariert',
  ),
  clauses.Clause(
    'a signal in {city3} is defective',
    'ein Signal in {city3} / ist / defekt /',
  ),
  clauses.Clause(
    'a tree has fallen onto the track near {city3}',
    'ein Baum / ist / bei {city3} auf das Gleis / gefallen',
  ),
  clauses.Clause(
    'there is a lack of staff',
    'es / fehlt / an Personal /',
  ),
  clauses.Clause(
    '{dozens} passengers from {city3} are still waiting',
    '{dozens} Fahrgäste aus {city3} / warten / noch /',
  ),
)
_SEQUELS = (
  clauses.Clause(
    'tickets will remain valid until {date}',
    '[Fahrkarten|Tickets] / bleiben / bis zum {date} / gültig',
  ),
  clauses.Clause(
    'passengers can take the bus for {price}',
    'Fahrgäste / können / für {price} den Bus / nehmen',
  ),
  clauses.Clause(
    'the next train for {city3} leaves in {minutes}',
    'der nächste Zug nach {city3} / fährt / in {minutes} /',
  ),
  clauses.Clause(
    'passengers will get back {percent} of the fare',
    'Fahrgäste / bekommen / {percent} des Fahrpreises / zurück+',
  ),
  clauses.Clause(
    'a ticket to {city3} will cost only {fare}',
    'eine Fahrkarte nach {city3} / kostet / nur {fare} /',
  ),
)


def _train(rng: random.Random) -> phrases.Phrase:
  """Draws 'ICE 512': the kinds of train are all masculine."""
  name = rng.choice(('EC', 'IC', 'ICE', 'RE'))
  name = f'{name} {rng.randint(2, 799)}'
  return phrases.phrase(name, name)


TOPIC = clauses.Topic(
  name='trains',
  sources=(
    clauses.source('the railway', 'die Bahn', 'der Bahn'),
    clauses.source('the operator', 'der Betreiber', 'dem Betreiber'),
  ),
  fillers={
    **fillers.SHARED,
    'train': _train,
    'platform': phrases.whole_number(1, 24),
    'fare': phrases.price(12, 99),
  },
  facts=_FACTS,
  reasons=_REASONS,
  sequels=_SEQUELS,
)
