# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two different outputs of a row differ only by rounding.

Batches and blocks of different sizes are computed by matrix products of
different shapes, which round differently. Rounding can change a token where the
two most likely tokens are almost equally likely, or where the uniform of a
sample almost equals a boundary between two outcomes (a near tie); any other
difference is a bug. Therefore all paths are run on this device up to the
decision at which the outputs part, and its margin is compared with the
difference between the paths. `docs/correctness.md` defines both.

Legend: vocab, length (of the outputs), paths (ways to compute the same logits).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

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
  """Where two outputs of a row part, and how closely it was decided.

  What is None was not found: the sample cannot be repeated.

  Attributes:
    row: index of the row in the batch of the first output.
    position: of the first decision that differs; the tokens differ there or
      later.
    decision: what was decided.
    tokens: each output's token at this position.
    logits: of the two tokens, in the path of each output.
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


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The comparison of two runs' outputs for the same rows.

  Attributes:
    num_identical: number of rows without a difference.
    differences: one per other row.
  """

  num_identical: int
  differences: tuple[Difference, ...]

  @property
  def near_ties(self) -> tuple[Difference, ...]:
    return tuple(d for d in self.differences if d.is_near_tie)

  @property
  def mismatches(self) -> tuple[Difference, ...]:
    return tuple(d for d in self.differences if not d.is_near_tie)


def compare(
    decoder: token_decoder.TokenDecoder,
    request: token_decoder.Request,
    plain_sequences: np.ndarray,
    speculative_sequences: np.ndarray,
) -> Comparison:
  """Compares the plain and speculative outputs of a batch at temperature 0.

  Args:
    decoder: the decoder of both outputs.
    request: the batch.
    plain_sequences: [rows, length] int32.
    speculative_sequences: [rows, length] int32.
  """
  rows = np.flatnonzero(
      np.any(plain_sequences != speculative_sequences, axis=1)
  )
  output = lambda row, is_speculative, sequences: decisions.Output(
      decoder, request, row, is_speculative, sequences[row]
  )
  differences = tuple(
      explain(
          output(row, False, plain_sequences),
          output(row, True, speculative_sequences),
      )
      for row in rows.tolist()
  )
  return Comparison(len(plain_sequences) - len(rows), differences)


def explain(first: decisions.Output, second: decisions.Output) -> Difference:
  """Returns where and how closely two different outputs of a row part.

  Args:
    first: of the one run.
    second: of the other; see `decisions.find` for what they must share.
  """
  decision = decisions.find(first, second)
  if decision is None:
    position = decisions.first_difference(first, second)
    tokens = int(first.sequence[position]), int(second.sequence[position])
    return Difference(first.row, position, None, tokens)
  logits = _logits(first, second, decision)
  bounds = _bounds(first, second, decision, logits)
  finite = np.all(np.isfinite(bounds), axis=0)  # forbidden ids have -inf
  path_difference = float(np.max(np.ptp(bounds[:, finite], axis=0)))
  if decision.kind != _Kind.ARGMAX:
    path_difference += _ROUNDING
  own = [
      logits[_path(output, output.block)][list(decision.tokens)].tolist()
      for output in (first, second)
  ]
  return Difference(
      first.row,
      decision.position,
      decision.kind,
      decision.tokens,
      logits=tuple(map(tuple, own)),
      margin=_margin(decision, bounds[0]),
      path_difference=path_difference,
  )


def _path(
    output: decisions.Output, block: int
) -> tuple[int, tuple[int, ...], int]:
  """Returns what the rounding of a path depends on."""
  return id(output.decoder), output.request.encoder_input_tokens.shape, block


def _logits(
    first: decisions.Output,
    second: decisions.Output,
    decision: decisions.Decision,
) -> dict[tuple[int, tuple[int, ...], int], np.ndarray]:
  """Returns the target's logits [vocab] in each path, the first's own first.

  Each run's batch is decoded token by token and in blocks, so that there are
  two paths even for two runs of equal shapes.
  """
  found = {}
  for output in (first, second):
    for block in sorted((1, output.decoder.gamma + 1), key=output.block.__ne__):
      path = _path(output, block)
      if path not in found:
        found[path] = forced.logits_at(
            output.decoder,
            output.request,
            output.row,
            decision.context,
            decision.position,
            block,
        ).astype(np.float64)
  return found


def _bounds(
    first: decisions.Output,
    second: decisions.Output,
    decision: decisions.Decision,
    logits: dict[tuple[int, tuple[int, ...], int], np.ndarray],
) -> np.ndarray:
  """Returns what decides, in each path: [paths, vocab] float64."""
  if decision.kind == _Kind.ARGMAX:
    return np.stack(list(logits.values()))
  needs_q = decision.kind != _Kind.DRAW
  draft = {
      _path(output, 0): _draft_probs(output, decision)
      for output in (first, second)
      if needs_q
  }
  return np.stack(
      [
          _boundaries(
              decision.kind,
              _probs(each, first.request.sampling),
              draft.get((*path[:2], 0)),
          )
          for path, each in logits.items()
      ]
  )


def _probs(logits: np.ndarray, sampling: sampling_lib.Sampling) -> np.ndarray:
  probs = _standardize(jnp.asarray(logits, jnp.float32), sampling)
  return np.asarray(probs, np.float64)


def _draft_probs(
    output: decisions.Output, decision: decisions.Decision
) -> np.ndarray:
  probs = acceptance.draft_probs(
      output.decoder, output.request, output.row, decision.context
  )
  return probs[decision.position].astype(np.float64)


def _boundaries(
    kind: decisions.Kind, p: np.ndarray, q: np.ndarray | None
) -> np.ndarray:
  """Returns what the uniform is compared with, per token.

  Args:
    kind: what is decided, not by argmax.
    p: [vocab], the target's distribution.
    q: [vocab], the drafter's; None for a draw from p.
  Returns:
    [vocab]: the probability with which each token would be accepted, or the
    upper end of its interval of the inverse CDF.
  """
  if kind == _Kind.ACCEPTANCE:
    # A token that is never drafted is never tested.
    return np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))
  weights = {
      _Kind.DRAW: lambda: p,
      _Kind.DRAFT: lambda: q,
      _Kind.RESAMPLED: lambda: np.maximum(p - q, 0),
  }[kind]()
  # Without a residual, rounding caused the rejection: see `residual`.
  cumulative = np.cumsum(weights if np.any(weights) else p)
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
