# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pairs of bulletins that state the same facts in two sentence patterns."""

import dataclasses
import itertools
import random

from scripts.bulletins import corpus
from scripts.bulletins import skeletons
from scripts.bulletins import topics

SEED = 20250305
SIZES = {'test': 200}
_PARTS = ('FACT', 'OTHER', 'REASON', 'SEQUEL')


@dataclasses.dataclass(frozen=True)
class Paraphrase:
  """A topic and two pairs of an English and a German text, and the skeletons.

  `texts` is the name of the topic, a pair, and the same facts as another pair.
  """

  texts: tuple[str, str, str, str, str]
  skeletons: tuple[skeletons.Skeleton, skeletons.Skeleton]


def paraphrases() -> dict[str, list[Paraphrase]]:
  """Returns the split, always the same one.

  Its patterns are those of the test split. No text occurs twice on its side.
  """
  rng = random.Random(SEED)
  about = list(zip(topics.NAMES, topics.read_topics(), strict=True))
  frames = skeletons.read_frames('frames', skeletons.Frame)['test']
  pairs = [
    pair
    for pair in itertools.permutations(frames, 2)
    if _parts(pair[0]) == _parts(pair[1])
  ]
  return corpus.distinct(
    SIZES,
    lambda split: _draw(*rng.choice(about), rng.choice(pairs), rng),
    (corpus.MAX_CHARACTERS,) * 5,
    first=1,
  )


def _parts(frame: skeletons.Frame) -> set[str]:
  return {part for part in _PARTS if f'{{{part}}}' in frame.en}


def _draw(
  name: str,
  topic: topics.Topic,
  pair: tuple[skeletons.Frame, skeletons.Frame],
  rng: random.Random,
) -> Paraphrase:
  first, second = pair
  # Statements that both frames can join.
  both = dataclasses.replace(
    first,
    en=f'{first.en} {second.en}',
    about_future=first.about_future or second.about_future,
  )
  parts = corpus.choose_parts(topic, both, rng)
  made = tuple(
    skeletons.compose(frame, parts, tell_when=True) for frame in pair
  )
  drawn = skeletons.draw(' '.join(s.en for s in made), topic.fillers, rng)
  texts = (
    skeletons.fill(skeletons.worded(getattr(s, language), rng), drawn, language)
    for s in made
    for language in ('en', 'de')
  )
  return Paraphrase((name, *texts), made)
