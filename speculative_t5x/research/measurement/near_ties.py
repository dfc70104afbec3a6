# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two different outputs of a row differ only by rounding.

Batches and blocks of different sizes are computed by matrix products of
different shapes, which round differently. Rounding can change a token where the
two most likely tokens are almost equally likely, or where the uniform of a
sample almost equals a boundary between two outcomes (a near tie); any other
difference is a bug. Therefore all paths are run on this device up to the
decision at which the outputs first differ, and its margin is compared with the
difference between the paths. `docs/correctness.md` defines both.

Legend: vocab, length (of the outputs), paths (ways to compute the same logits).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import decisions
from speculative_t5x.research.measurement import forced
from speculative_t5x.speculation import sampling as sampling_lib

_Kind = decisions.Kind
# Of sums of probabilities, which are float32 whatever the models are, and of
# the integers that a draw makes of them.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
_standardize = jax.jit(sampling_lib.standardize)


@dataclasses.dataclass(frozen=True)
class Difference:
  """Where two outputs of a row first differ, and how close the decision was.

  What is None was not found: the sample cannot be repeated.

  Attributes:
    row: index of the row in the batch of the first output.
    position: position of the first decision that differs; the tokens differ
      there or later.
    decision: what was decided.
    tokens: each output's token at this position.
    logits: logits of the two tokens, in the path of each output.
    margin: how far the decision is from being the other one. At temperature 0
      the difference of the two logits, else the distance of the uniform from
      the boundary.
    path_difference: largest difference between paths of what the margin is
      measured in: logits at temperature 0, else boundaries.
  """

  row: int
  position: int
  decision: decisions.Kind | None
  tokens: tuple[int, int]
  logits: tuple[tuple[float, float], tuple[float, float]] | None = None
  margin: float | None = None
  path_difference: float | None = None

  @property
  def tolerance(self) -> float | None:
    """The largest margin that rounding explains.

    Rounding may move both sides of the comparison, hence the factor 2.
    """
    return self.path_difference and 2 * self.path_difference

  @property
  def is_near_tie(self) -> bool:
    """Whether rounding explains the difference."""
    return self.margin is not None and self.margin <= self.tolerance


def compare(
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
    plain_sequences: np.ndarray,
    speculative_sequences: np.ndarray,
) -> list[Difference]:
  """Compares the plain and speculative outputs of a batch at temperature 0.

  Args:
    decoder: the decoder of both outputs.
    request: the batch.
    plain_sequences: [rows, length] int32.
    speculative_sequences: [rows, length] int32.
  Returns:
    One difference per row whose outputs are not identical.
  """
  rows = np.any(plain_sequences != speculative_sequences, axis=1)
  return [
      explain(
          decisions.Output(decoder, request, row, False, plain_sequences[row]),
          decisions.Output(
              decoder, request, row, True, speculative_sequences[row]
          ),
      )
      for row in np.flatnonzero(rows).tolist()
  ]


def explain(first: decisions.Output, second: decisions.Output) -> Difference:
  """Returns where two outputs of a row first differ, and how closely.

  Args:
    first: what the one run wrote.
    second: what the other wrote; see `decisions.find` for what they must share.
  """
  decision = decisions.find(first, second)
  if decision is None:
    position, tokens = decisions.first_difference(first, second)
    return Difference(first.row, position, None, tuple(tokens))
  own_logits, bounds = [], []
  for output in (first, second):
    q = None
    if decision.kind not in (_Kind.ARGMAX, _Kind.DRAW):
      q = acceptance.draft_probs(
          output.decoder, output.request, output.row, decision.context
      )[decision.position].astype(np.float64)
    # Each batch is decoded token by token and in blocks, so that there are two
    # paths even for two runs of equal shapes. The run's own path comes first.
    for block in sorted((1, output.decoder.gamma + 1), key=output.block.__ne__):
      logits = forced.logits_at(
          output.decoder, output.request, output.row, decision.context,
          decision.position, block,
      )  # fmt: skip
      bounds.append(_bounds(decision.kind, logits, q, first.request.sampling))
      if block == output.block:
        own_logits.append(logits[list(decision.tokens)].astype(np.float64))
  bounds = np.stack(bounds)
  finite = np.all(np.isfinite(bounds), axis=0)  # forbidden ids have -inf
  path_difference = float(np.max(np.ptp(bounds[:, finite], axis=0)))
  if decision.kind != _Kind.ARGMAX:
    path_difference += _ROUNDING
  return Difference(
      first.row,
      decision.position,
      decision.kind,
      decision.tokens,
      logits=tuple(tuple(each.tolist()) for each in own_logits),
      margin=_margin(decision, bounds[0]),
      path_difference=path_difference,
  )


def _bounds(
    kind: decisions.Kind,
    logits: np.ndarray,
    q: np.ndarray | None,
    sampling: sampling_lib.Sampling,
) -> np.ndarray:
  """Returns what decides in one path, per token: [vocab] float64.

  Args:
    kind: what is decided.
    logits: [vocab], the target's logits.
    q: [vocab], the drafter's distribution; None where it does not matter.
    sampling: the target's sampling.
  Returns:
    The logits at temperature 0. Otherwise what the uniform is compared with:
    the probability with which each token would be accepted, or the upper end of
    its interval of the inverse CDF.
  """
  if kind == _Kind.ARGMAX:
    return logits.astype(np.float64)
  probs = _standardize(jnp.asarray(logits, jnp.float32), sampling)
  return _boundaries(kind, np.asarray(probs, np.float64), q)


def _boundaries(
    kind: decisions.Kind, p: np.ndarray, q: np.ndarray | None
) -> np.ndarray:
  """Returns what a uniform is compared with, see `_bounds`."""
  if kind == _Kind.ACCEPTANCE:
    # A token that is never drafted is never tested.
    return np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))
  weights = p
  if kind == _Kind.DRAFT:
    weights = q
  elif kind == _Kind.RESAMPLED and np.any(p > q):
    # Without a residual, rounding caused the rejection: see `residual`.
    weights = np.maximum(p - q, 0)
  cumulative = np.cumsum(weights)
  return cumulative / cumulative[-1]


def _margin(decision: decisions.Decision, bounds: np.ndarray) -> float:
  """Returns how far a decision is from being the other one.

  Args:
    decision: the decision.
    bounds: [vocab], what decides: logits or boundaries.
  """
  if decision.kind == _Kind.ARGMAX:
    # Both tokens must almost be the argmax, whichever token is.
    return float(np.max(bounds) - np.min(bounds[list(decision.tokens)]))
  first, second = decision.uniform
  if decision.kind == _Kind.ACCEPTANCE:
    coin = first + second * 2.0**-32
    return float(abs(coin - bounds[decision.draft_token]))
  return max(
      _distance_to_drawing(token, first, second, bounds)
      for token in decision.tokens
  )


def _distance_to_drawing(
    token: int, first: float, second: float, bounds: np.ndarray
) -> float:
  """Returns how far a uniform is from drawing a token, as a probability.

  The first word must lie in the interval of the token's block, and the second,
  spread over that interval, in the token's own.
  """
  ends = np.concatenate([[0], bounds])
  begin = token - token % sampling_lib.BLOCK
  end = min(begin + sampling_lib.BLOCK, len(bounds))
  outside = lambda x, i, j: max(ends[i] - x, x - ends[j], 0)
  inner = ends[begin] + second * (ends[end] - ends[begin])
  return float(
      max(outside(first, begin, end), outside(inner, token, token + 1))
  )
