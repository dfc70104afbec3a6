# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The outputs of a decoder, as they are returned."""

from collections.abc import Mapping, Sequence
import dataclasses
import reprlib
from typing import Any, Self

import jax
import numpy as np

from speculative_t5x.speculation import outcome as outcome_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Decode:
  """One output, or its tokens so far.

  Attributes:
    tokens: Token ids, end of sequence included.
    log_probs: [tokens] float32, the log-probability of each; their sum is the
      score, see `Options.rescale_log_probs`. Without entries of a search.
    model_log_probs: [tokens] float32, likewise before temperature and filters.
    origins: [tokens] int32, how each came about, see `outcome.Committed`;
      likewise.
    number: Number among the samples of its input as they were drawn, from 0 on,
      or among the hypotheses of a search, from the best one on.
    has_end: Whether an end of sequence ended it, and not its limit.
    score: Log-probability of all tokens.
    num_calls: Target calls.
    statistics: Counts of a speculative run; None of a plain one.
    alternatives: [tokens, count], the likeliest tokens at each position and
      their `model_log_probs`, as many as `Request.alternatives`; None for none.
    is_whole: Whether no more tokens come.
  """

  tokens: list[int]
  log_probs: np.ndarray
  model_log_probs: np.ndarray
  origins: np.ndarray
  number: int
  has_end: bool
  score: float
  num_calls: int
  statistics: outcome_lib.Statistics | None
  _: dataclasses.KW_ONLY
  alternatives: outcome_lib.Alternatives | None = None
  is_whole: bool = True

  @classmethod
  def empty(cls, number: int, gamma: int) -> Self:
    """Return an output of an input that is not decoded."""
    none, statistics = np.zeros((0,), np.float32), None
    if gamma:
      counts = outcome_lib.COUNTING.init(1, 1, gamma)
      statistics = jax.tree.map(lambda x: np.asarray(x[0]), counts)
    origins = none.astype(np.int32)
    return cls([], none, none, origins, number, False, 0.0, 0, statistics)

  @property
  def text_tokens(self) -> list[int]:
    """Token ids without the end of sequence."""
    return self.tokens[:-1] if self.has_end else self.tokens


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
  """The decodes of one input, in T5X's order: the best one comes last.

  Samples are in order of their scores, hypotheses of a search in that of
  `beams.hypotheses`.

  Attributes:
    texts: One string per decode.
    tokens: Token ids per decode, without end of sequence and padding.
    scores: [num_decodes] float32, log-probabilities; of a beam search, over the
      penalty of their length.
    statistics: Counts of this input, summed over its decodes, and rates; see
      `counts.of_result`.
    is_truncated: Whether the input was cut to its limit.
    is_unknown: Whether it has text that the vocabulary does not know, see
      `vocabularies.Vocabulary.knows`.
    decodes: The outputs with all that is known of each.
  """

  texts: list[str]
  tokens: list[list[int]]
  scores: np.ndarray
  statistics: Mapping[str, Any]
  is_truncated: bool = False
  is_unknown: bool = False
  decodes: Sequence[Decode] = ()

  @property
  def text(self) -> str:
    """The best text."""
    return self.texts[-1]

  def __repr__(self) -> str:
    calls = self.statistics['target_calls']
    return f'Result({reprlib.repr(self.texts)}, {calls} target calls)'


@dataclasses.dataclass(frozen=True, eq=False)
class Output(Sequence[Result]):
  """The results of several inputs: a sequence in their order.

  Attributes:
    results: One per input.
    statistics: Likewise, of all of them.
  """

  results: Sequence[Result]
  statistics: Mapping[str, Any]

  @property
  def best(self) -> list[str]:
    """The best text of each input."""
    return [result.text for result in self.results]

  @property
  def texts(self) -> list[list[str]]:
    """All texts of each input, the best one last."""
    return [result.texts for result in self.results]

  @property
  def tokens(self) -> list[list[list[int]]]:
    """Token ids of each text, without end of sequence and padding."""
    return [result.tokens for result in self.results]

  @property
  def scores(self) -> np.ndarray:
    """Log-probabilities of all texts, [inputs, num_decodes] float32."""
    return np.stack([result.scores for result in self.results])

  @property
  def num_truncated(self) -> int:
    """Number of inputs that were cut to their limit."""
    return sum(result.is_truncated for result in self.results)

  @property
  def num_unknown(self) -> int:
    """Number of inputs with text that the vocabulary does not know."""
    return sum(result.is_unknown for result in self.results)

  def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
    return self.results[index]

  def __len__(self) -> int:
    return len(self.results)

  def __repr__(self) -> str:
    calls = self.statistics['target_calls']
    return f'Output({reprlib.repr(self.best)}, {calls} target calls)'
