# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's beam search of one example, hypothesis by hypothesis, in NumPy.

Written apart from `speculation.beams`, after the description of T5X's
`beam_search`: lists in place of arrays, and sums in float32.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

_NONE = np.float32(-1e7)


class Hypothesis(NamedTuple):
  tokens: tuple[int, ...]
  score: np.float32
  is_there: bool = True


def search(
    log_probs: Callable[[tuple[int, ...]], np.ndarray],
    beams: int,
    limit: int,
    penalty: float,
    ends: Sequence[int],
) -> list[Hypothesis]:
  """Return the hypotheses of an example, the best one last.

  Args:
    log_probs: Returns those of the token after some tokens, [vocab] float32.
    beams: Number of hypotheses.
    limit: Most tokens, end included.
    penalty: Exponent of the brevity penalty.
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
    candidates = _best(candidates, 2 * beams)
    does_end = [each.tokens[-1] in ends for each in candidates]
    lives = [
        each._replace(score=np.float32(each.score + _NONE)) if end else each
        for each, end in zip(candidates, does_end)
    ]
    live = _best(lives, beams)[::-1]
    ends_of = []
    for each, end in zip(candidates, does_end):
      score = np.float32(each.score / _brevity(count, penalty))
      score = score if end else np.float32(score + _NONE)
      ends_of.append(Hypothesis(each.tokens, score, end))
    ended = _best([*ended, *ends_of], beams)[::-1]
    bound = live[-1].score / _brevity(limit + 1, penalty)
    worst = min(each.score for each in ended)
    if all((worst if x.is_there else _NONE) > bound for x in ended):
      break
  return ended if any(each.is_there for each in ended) else live


def _best(hypotheses: Sequence[Hypothesis], count: int) -> list[Hypothesis]:
  """Return the best ones; of equal scores the first ones."""
  return sorted(hypotheses, key=lambda each: -each.score)[:count]


def _brevity(length: int, penalty: float) -> np.float32:
  return np.float32(((5 + length) / 6) ** penalty)
