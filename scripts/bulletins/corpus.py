# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The splits of the translation corpus."""

from collections.abc import Sequence
import dataclasses
import random
import re

from scripts.bulletins import skeletons
from scripts.bulletins import topics

SEED = 20250303
SIZES = {'train': 40_000, 'validation': 500, 'test': 500}
# Longer pairs are dropped, which keeps both sides within 96 pieces.
MAX_CHARACTERS = 260

_FUTURE = ('day', 'future')
# Half of the test bulletins are about a fact never stated in training; in
# the others only the joining of the statements is new.
_HELD_OUT_FACTS = 0.5
_TELL_WHEN = 0.75


@dataclasses.dataclass(frozen=True)
class Bulletin:
  """A pair of texts and the skeleton that it was made from."""

  en: str
  de: str
  skeleton: skeletons.Skeleton


def bulletins() -> dict[str, list[Bulletin]]:
  """Returns the splits, always the same ones.

  No text occurs twice on its side, within a split or across splits.
  """
  rng = random.Random(SEED)
  seen = set()
  about = topics.read_topics()
  joined = skeletons.read_frames()
  return {
    split: _distinct(
      size, seen, lambda frames=joined[split]: _draw(rng, about, frames)
    )
    for split, size in SIZES.items()
  }


def _distinct(size, seen, draw) -> list[Bulletin]:
  """Draws bulletins whose texts are not in `seen`, and adds them to it."""
  drawn = []
  while len(drawn) < size:
    bulletin = draw()
    texts = {('en', bulletin.en), ('de', bulletin.de)}
    too_long = max(len(bulletin.en), len(bulletin.de)) > MAX_CHARACTERS
    if too_long or texts & seen:
      continue
    seen |= texts
    drawn.append(bulletin)
  return drawn


def _draw(
  rng: random.Random,
  about: Sequence[topics.Topic],
  frames: Sequence[skeletons.Frame],
) -> Bulletin:
  topic = rng.choice(about)
  frame = rng.choice(frames)
  skeleton = skeletons.compose(
    frame,
    _parts(topic, frame, rng),
    tell_when=rng.random() < _TELL_WHEN,
  )
  en, de = skeletons.fill(skeleton, topic.fillers, rng)
  return Bulletin(en, de, skeleton)


def _parts(
  topic: topics.Topic, frame: skeletons.Frame, rng: random.Random
) -> dict[str, topics.Clause]:
  """Chooses the statements that a frame asks for."""
  named = re.findall(r'\{([A-Z]+)\}', frame.en)
  parts = {}
  if 'REASON' in named:
    parts['REASON'] = rng.choice(topic.reasons)
  if 'SEQUEL' in named:
    parts['SEQUEL'] = rng.choice(topic.sequels)
  if 'FACT' in named:
    new = frame.held_out and rng.random() < _HELD_OUT_FACTS
    parts['FACT'] = rng.choice(_facts(topic, frame, held_out=new))
  if 'OTHER' in named:
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
