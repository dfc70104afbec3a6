# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the bulletins are about, one file for each subject."""

from scripts.bulletins.topics import animals
from scripts.bulletins.topics import cooking
from scripts.bulletins.topics import currencies
from scripts.bulletins.topics import energy
from scripts.bulletins.topics import events
from scripts.bulletins.topics import people
from scripts.bulletins.topics import population
from scripts.bulletins.topics import prices
from scripts.bulletins.topics import sport
from scripts.bulletins.topics import traffic
from scripts.bulletins.topics import trains
from scripts.bulletins.topics import weather

TOPICS = (
  weather.TOPIC,
  trains.TOPIC,
  traffic.TOPIC,
  prices.TOPIC,
  currencies.TOPIC,
  energy.TOPIC,
  events.TOPIC,
  sport.TOPIC,
  population.TOPIC,
  animals.TOPIC,
  people.TOPIC,
  cooking.TOPIC,
)
