# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Targets and drafters whose outputs are few enough to enumerate.

Legend: examples, vocab.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.testing import table_model

LIMITS = 4, 2
# What a drafter may copy from: the inputs, and one hint of each example.
INPUTS = np.array([(2, 2, 2, 1), (2, 2, 1, -1)], np.int32)
HINTS = np.array([(2, 1, -1, -1), (2, -1, 2, 2)], np.int32)


@dataclasses.dataclass(frozen=True)
class Pair:
  """A target and a drafter.

  Attributes:
    target: The model whose distribution outputs must follow.
    target_params: Parameters of the target.
    drafter: Drafts for it.
    draft_params: Parameters of the drafter.
    inputs: One row per example.
    limits: Most tokens of each example.
    find_logits: Returns the target's logits of the token after some tokens,
      given an example, without any production code of decoding.
    tolerance: Rounding of probabilities.
    hints: Hints of each example, see `views.Context`; None without.
  """

  target: contracts.Model
  target_params: Any
  drafter: contracts.Drafter
  draft_params: Any
  inputs: np.ndarray
  limits: tuple[int, ...]
  find_logits: Callable[[int, tuple[int, ...]], np.ndarray]
  tolerance: float = 1e-5
  hints: np.ndarray | None = None


def target_logits(vocab_size: int) -> np.ndarray:
  """Return the parameters of a random target, see `table_model.TextModel`."""
  return table_model.random_logits(1, len(LIMITS), vocab_size)


def draft_logits(vocab_size: int, width: int | None = None) -> np.ndarray:
  """Return parameters of a draft model that resembles the random target.

  It drafts the first `width` tokens; None for all.
  """
  width = width or vocab_size
  # Near enough to be accepted at times, far enough to be rejected.
  own = table_model.random_logits(2, len(LIMITS), vocab_size, width)
  return 0.5 * own + target_logits(vocab_size)[..., :width]


def of_tables(
    drafter: contracts.Drafter,
    params: Any = None,
    *,
    vocab_size: int,
    tolerance: float,
    hints: np.ndarray | None = HINTS,
) -> Pair:
  """Return the pair of the random target and a drafter for it.

  The drafter is made for `table_model.TextModel(vocab_size)`, which has the
  tokens of inputs and hints, at least 3. Hints are [examples, any] int32, or
  None.
  """
  logits = target_logits(vocab_size)
  return Pair(
      table_model.TextModel(vocab_size),
      logits,
      drafter,
      params,
      INPUTS,
      LIMITS,
      lambda example, tokens: logits[example, *table_model.place(tokens)],
      tolerance,
      hints,
  )
