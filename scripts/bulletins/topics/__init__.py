"""What the bulletins are about, one file for each subject."""

from scripts.bulletins.topics import (
  animals,
  cooking,
  currencies,
  energy,
  events,
  people,
  population,
  prices,
  sport,
  traffic,
  trains,
  weather,
)

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
