# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The splits of the summarization corpus: reports and their summaries."""

import dataclasses
import random

from scripts.bulletins import corpus
from scripts.bulletins import grammar
from scripts.bulletins import phrases
from scripts.bulletins import skeletons
from scripts.bulletins import topics

SEED = 20250304
SIZES = {'train': 16_000, 'validation': 500, 'test': 500}
# Longer pairs are dropped, which keeps reports within 160 pieces and summaries
# within 64.
MAX_CHARACTERS = (420, 130)


@dataclasses.dataclass(frozen=True)
class Frame:
  """Patterns of a report and its summary (see `data/report_frames.toml`)."""

  report: str
  summary: str


@dataclasses.dataclass(frozen=True)
class Report:
  """A report and its summary, and the frame that both were made from."""

  texts: tuple[str, str]
  frame: Frame


def reports() -> dict[str, list[Report]]:
  """Returns the splits, always the same ones.

  No report and no summary occurs twice, within a split or across splits. The
  test split has frames that the others do not have.
  """
  rng = random.Random(SEED)
  about = topics.read_topics()
  frames = skeletons.read_frames('report_frames', Frame)
  return corpus.distinct(
    SIZES,
    lambda split: _draw(rng.choice(about), rng.choice(frames[split]), rng),
    MAX_CHARACTERS,
  )


def _draw(topic: topics.Topic, frame: Frame, rng: random.Random) -> Report:
  story = rng.choice(topic.stories)
  parts = _parts(story, rng)
  source = rng.choice(list(story.sources.items()))
  fillers = {
    **topic.fillers,
    'when': topic.fillers[story.tense],
    'source': topics.one_of([phrases.source('', *source)]),
  }

  def words(part: str, order: str) -> str:
    return grammar.ordered(parts[part], order)

  report, summary = (
    skeletons.place(pattern, words, '{when}')
    for pattern in (frame.report, frame.summary)
  )
  report = skeletons.worded(report, rng)
  # The report has every slot of its summary.
  drawn = skeletons.draw(report, fillers, rng)
  text, summary = (skeletons.fill(t, drawn, 'de') for t in (report, summary))
  return Report((text, summary), frame)


def _parts(story: topics.Story, rng: random.Random) -> dict[str, str]:
  """Chooses the statements of a report by their names in frames."""
  details = rng.sample(story.details, 3)
  return {
    'FACT': rng.choice(story.facts),
    'REASON': rng.choice(story.reasons),
    'SEQUEL': rng.choice(story.sequels),
    **dict(zip(('DETAIL', 'DETAIL2', 'DETAIL3'), details, strict=True)),
  }
