# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam searches of one example, hypothesis by hypothesis, in NumPy.

Written apart from `speculation.beams`, after the description of T5X's
`beam_search` and that of Hugging Face: lists in place of arrays, and sums in
float32.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

_NONE = np.float32(-1e7)


class Hypothesis(NamedTuple):
  tokens: tuple[int, ...]
  score: np.float32
  is_there: bool = True


class T5X(NamedTuple):
  """How T5X compares hypotheses."""

  penalty: float
  min_log_prob: float = -np.inf
  limit_ends = False

  def ends(self, rank, is_end, is_last, beams):
    return is_end

  def divisor(self, count):
    return np.float32(((5 + count) / 6) ** self.penalty)

  def stops(self, worst, best, count, limit):
    is_hopeless = best < self.min_log_prob
    return is_hopeless or worst > best / self.divisor(limit + 1)


class HuggingFace(NamedTuple):
  """How Hugging Face does, without early stopping."""

  penalty: float
  num_forced: int = 0
  limit_ends = True

  def ends(self, rank, is_end, is_last, beams):
    return rank < beams and (is_end or is_last)

  def divisor(self, count):
    return np.float32((count + self.num_forced) ** self.penalty)

  def stops(self, worst, best, count, limit):
    return worst >= best / self.divisor(count)


def search(
    log_probs: Callable[[tuple[int, ...]], np.ndarray],
    beams: int,
    limit: int,
    rules: T5X | HuggingFace,
    ends: Sequence[int],
) -> tuple[list[Hypothesis], list[Hypothesis]]:
  """Return ended and live hypotheses of an example, the best one last.

  Args:
    log_probs: Returns those of the token after some tokens, [vocab] float32.
    beams: Number of hypotheses.
    limit: Most tokens, end included.
    rules: How hypotheses are compared.
    ends: Tokens that end a hypothesis.
  """
  live = [Hypothesis((), np.float32(0))]
  live += [Hypothesis((), _NONE)] * (beams - 1)
  ended = [Hypothesis((), _NONE, False)] * beams
  for count in range(1, limit + 1):
    candidates = [
        Hypothesis((*before.tokens, token), np.float32(before.score + log_prob))
        for before in live
        for token, log_prob in enumerate(log_probs(before.tokens))
    ]
    candidates = _best(candidates, (1 + len(ends)) * beams)
    does_end = [each.tokens[-1] in ends for each in candidates]
    lives = [
        each._replace(score=np.float32(each.score + _NONE)) if end else each
        for each, end in zip(candidates, does_end)
    ]
    live = _best(lives, beams)[::-1]
    ends_of = []
    for rank, (each, end) in enumerate(zip(candidates, does_end)):
      end = rules.ends(rank, end, count == limit, beams)
      score = np.float32(each.score / rules.divisor(count))
      score = score if end else np.float32(score + _NONE)
      ends_of.append(Hypothesis(each.tokens, score, end))
    ended = _best([*ended, *ends_of], beams)[::-1]
    worst = min(each.score for each in ended)
    stops = [
        rules.stops(
            worst if each.is_there else _NONE, live[-1].score, count, limit
        )
        for each in ended
    ]
    if all(stops):
      break
  return ended, live


def t5xs(
    ended: Sequence[Hypothesis], live: Sequence[Hypothesis]
) -> Sequence[Hypothesis]:
  """Return the outputs of T5X's search."""
  return ended if any(each.is_there for each in ended) else live


def filled(
    ended: Sequence[Hypothesis],
    live: Sequence[Hypothesis],
    rules: T5X | HuggingFace,
) -> list[Hypothesis]:
  """Return the ended hypotheses behind the best live ones that have room."""
  divisor = lambda each: rules.divisor(len(each.tokens))
  known = [
      each
      for each in ended
      if each.is_there and each.score * divisor(each) > _NONE / 2
  ]
  others = [
      each._replace(score=np.float32(each.score / divisor(each)))
      for each in live
      if each.score > _NONE / 2 and not rules.limit_ends
  ]
  none = [Hypothesis((), _NONE)] * len(ended)
  return [*none, *others, *known][-len(ended) :]


def _best(hypotheses: Sequence[Hypothesis], count: int) -> list[Hypothesis]:
  """Return the best ones; of equal scores the first ones."""
  return sorted(hypotheses, key=lambda each: -each.score)[:count]
