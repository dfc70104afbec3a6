# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The splits of the translation corpus."""

import dataclasses
import operator
import random

from scripts.bulletins import composed
from scripts.bulletins import skeletons
from scripts.bulletins import topics

SEED = 20250303
COMPOSED_SEED = 20250306
# Of the training split, pairs with a listed frame come first. The vocabulary
# is made from them alone.
NUM_LISTED = 40_000
NUM_COMPOSED = 40_000
SIZES = {'train': NUM_LISTED, 'validation': 500, 'test': 500}
# Longer pairs are dropped, which keeps both sides within 96 pieces. Composed
# ones have more words that the vocabulary does not hold as one piece.
MAX_CHARACTERS = 260
MAX_COMPOSED_CHARACTERS = 230

_FUTURE = ('day', 'future')
# Half of the test bulletins are about a fact never stated in training; in
# the others only the joining of the statements is new.
_HELD_OUT_FACTS = 0.5
_TELL_WHEN = 0.75


@dataclasses.dataclass(frozen=True)
class Bulletin:
  """An English and a German text, and the skeleton that both were made from."""

  texts: tuple[str, str]
  skeleton: skeletons.Skeleton


def bulletins() -> dict[str, list[Bulletin]]:
  """Returns the splits, always the same ones.

  No text occurs twice on its side, within a split or across splits.
  """
  rng = random.Random(SEED)
  about = topics.read_topics()
  frames = skeletons.read_frames('frames', skeletons.Frame)
  listed = distinct(
    SIZES,
    lambda split: _draw(rng.choice(about), rng.choice(frames[split]), rng),
    (MAX_CHARACTERS, MAX_CHARACTERS),
  )
  return listed | {'train': listed['train'] + _composed(frames, listed)}


def _composed(frames, listed) -> list[Bulletin]:
  """Draws the training pairs with composed frames and further statements."""
  # A stream of its own leaves the other splits as they are.
  rng = random.Random(COMPOSED_SEED)
  about = topics.read_training_topics()
  composer = composed.Composer.of_data(frames)
  return distinct(
    {'train': NUM_COMPOSED},
    lambda _: _draw(rng.choice(about), composer.draw(rng), rng),
    (MAX_COMPOSED_CHARACTERS, MAX_COMPOSED_CHARACTERS),
    used=[b for made in listed.values() for b in made],
  )['train']


def distinct(sizes, draw, max_characters, first=0, used=()) -> dict[str, list]:
  """Draws the splits of a corpus, without repetitions and long texts.

  `draw` returns an example of the split named, whose `texts` are as many as
  `max_characters`. Those before `first` may occur again, those of the examples
  `used` may not.
  """
  seen = {text for example in used for text in enumerate(example.texts)}
  splits = {split: [] for split in sizes}
  for split, examples in splits.items():
    while len(examples) < sizes[split]:
      example = draw(split)
      texts = set(list(enumerate(example.texts))[first:])
      lengths = map(len, example.texts)
      if texts & seen or any(map(operator.gt, lengths, max_characters)):
        continue
      seen |= texts
      examples.append(example)
  return splits


def _draw(
  topic: topics.Topic, frame: skeletons.Frame, rng: random.Random
) -> Bulletin:
  parts = choose_parts(topic, frame, rng)
  tell_when = rng.random() < _TELL_WHEN
  skeleton = skeletons.compose(frame, parts, tell_when=tell_when)
  # The English text has every slot.
  drawn = skeletons.draw(skeleton.en, topic.fillers, rng)
  en = skeletons.worded(skeleton.en, rng)
  de = skeletons.worded(skeleton.de, rng)
  texts = skeletons.fill(en, drawn, 'en'), skeletons.fill(de, drawn, 'de')
  return Bulletin(texts, skeleton)


def choose_parts(
  topic: topics.Topic, frame: skeletons.Frame, rng: random.Random
) -> dict[str, topics.Clause]:
  """Chooses the statements that a frame asks for."""
  parts = {}
  if '{REASON}' in frame.en:
    parts['REASON'] = rng.choice(topic.reasons)
  if '{SEQUEL}' in frame.en:
    parts['SEQUEL'] = rng.choice(topic.sequels)
  if '{FACT}' in frame.en:
    new = frame.held_out and rng.random() < _HELD_OUT_FACTS
    parts['FACT'] = rng.choice(_facts(topic, frame, held_out=new))
  if '{OTHER}' in frame.en:
    parts['OTHER'] = _other(topic, parts['FACT'], rng)
  return parts


def _facts(topic, frame, *, held_out) -> list[topics.Clause]:
  """Returns the facts that a frame can state."""
  fitting = [
    fact
    for fact in topic.facts
    if (fact.tense in _FUTURE or not frame.about_future)
    and (fact.tense or '{WHEN}' not in frame.en)
  ]
  # A topic without new facts of that tense states one that is known.
  return [fact for fact in fitting if fact.held_out == held_out] or fitting


def _other(topic, fact, rng) -> topics.Clause:
  """Chooses a known fact to set against another, of its tense if possible."""
  known = [f for f in topic.facts if f is not fact and not f.held_out]
  same_tense = [f for f in known if f.tense == fact.tense]
  return rng.choice(same_tense or known)
