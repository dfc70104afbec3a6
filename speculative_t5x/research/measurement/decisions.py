# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two different samples of a row differ only by rounding.

A sample is a sequence of decisions, each by comparing a uniform with a boundary
between two outcomes. Rounding moves the boundaries: the difference is a near
tie if the uniform almost equals one (see `near_ties`).

In plain decoding, the first decision that differs is the first token that does.
A speculative sample consists of several decisions per target call, and two runs
may differ in one of them before their tokens do: one run accepts a draft token
that the other run resamples. Both rows are therefore decoded again, and their
target calls are compared. The rule must be the paper's.

Legend: vocab, length (of the outputs), paths (ways to compute the same logits).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.measurement import tracing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib

# Of sums of probabilities, which are float32 whatever the models are, and of
# the integers that a draw makes of them.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
_Kind = near_ties.Kind
_standardize = jax.jit(sampling_lib.standardize)


class Decision(NamedTuple):
  """A choice that a uniform makes.

  Attributes:
    kind: What is decided.
    position: Position of the token that it is about.
    token: The token that is drawn, or tested.
    is_accepted: Whether it is accepted; None where nothing is tested.
    call: Number of the target call.
    uniform: Number of the uniform among those of the call.
  """

  kind: near_ties.Kind
  position: int
  token: int
  is_accepted: bool | None
  call: int
  uniform: int


def explain(
    first: near_ties.Row, second: near_ties.Row, sequences: np.ndarray
) -> near_ties.Difference:
  """Return where two samples of a row first differ, and how closely.

  As `near_ties.explain`; both runs decoded the row in the same way, with the
  same seed, sampling, drafter and gamma.
  """
  found = find(first, second, sequences)
  if found is None:
    position = near_ties.first_difference(sequences)
    tokens = tuple(sequences[:, position].tolist())
    return near_ties.Difference(first.index, position, None, tokens)
  decision, other = found
  tokens = decision.token, other.token
  if decision.kind == _Kind.ACCEPTANCE:
    tokens = tuple(sequences[:, decision.position].tolist())
  logits = near_ties.path_logits(
      first, second, sequences[0], decision.position
  )
  bounds = _bounds(first, second, sequences[0], decision, logits)
  uniform = _uniform(first, decision)
  if decision.kind == _Kind.ACCEPTANCE:
    # The second word has the finer digits of a coin.
    coin = uniform[0] + uniform[1] * 2.0**-32
    margin = float(abs(coin - bounds[0, decision.token]))
  else:
    margin = max(_distance_to_drawing(x, uniform, bounds[0]) for x in tokens)
  return near_ties.Difference(
      first.index,
      decision.position,
      decision.kind,
      tokens,
      near_ties.logits_of(tokens, logits),
      margin,
      near_ties.largest_difference(bounds) + _ROUNDING,
  )


def find(
    first: near_ties.Row, second: near_ties.Row, sequences: np.ndarray
) -> tuple[Decision, Decision] | None:
  """Return the first decision that two runs made differently, as each made it.

  Returns:
    None if a sample is not what its run gives when it is repeated here, or if a
    drafter chose its draft tokens by other means than one uniform per token.
  """
  end = near_ties.first_difference(sequences) + 1
  runs = []
  for row, sequence in zip((first, second), sequences.tolist(), strict=True):
    if not row.is_speculative:
      # Each call of plain decoding writes one token and has one uniform.
      own = [
          Decision(_Kind.DRAW, i, token, None, call=i, uniform=0)
          for i, token in enumerate(sequence)
      ]
    else:
      calls = tracing.calls(row.decoder, row.request, row.index)
      written = [t for c in calls for t in c.tokens[: c.num_committed]]
      if written[:end] != sequence[:end][: len(written)]:
        return None
      own = of_calls(row.decoder.drafter, calls)
    runs.append(own)
  for one, other in zip(*runs):
    if one != other:
      drafter = first.decoder.drafter
      is_known = drafter.num_uniforms == drafter.max_draft_tokens
      return (one, other) if one.kind != _Kind.DRAFT or is_known else None
  return None


def of_calls(
    drafter: contracts.Drafter, calls: Sequence[outcome_lib.Outcome]
) -> list[Decision]:
  """Return the decisions of a row's target calls, in their order.

  A call has the drafter's uniforms, then a coin per draft token, and last the
  uniform of the resampled or bonus token. Calls are numpy arrays without an
  axis of rows.
  """
  found = []
  for number, call in enumerate(calls):
    before, num_accepted = int(call.num_before), int(call.num_accepted)
    # Draft tokens behind a rejected one were drafted in vain.
    for index in range(int(call.num_tested)):
      token = before + index, int(call.draft_tokens[index])
      coin = drafter.num_uniforms + index
      is_accepted = index < num_accepted
      found += [
          Decision(_Kind.DRAFT, *token, None, number, index),
          Decision(_Kind.ACCEPTANCE, *token, is_accepted, number, coin),
      ]
    if not call.is_cut_short:
      kind = _Kind.RESAMPLED if call.is_rejected else _Kind.DRAW
      token = before + num_accepted, int(call.tokens[num_accepted])
      last = drafter.num_uniforms + drafter.max_draft_tokens
      found.append(Decision(kind, *token, None, number, last))
  return found


def _uniform(row: near_ties.Row, decision: Decision) -> tuple[float, float]:
  """Return the two words that decided, each divided by 2^32.

  A draw picks a block of tokens by the first and a token in it by the second.
  """
  request, drafter = row.request, row.decoder.drafter
  keys = state_lib.row_keys(
      request.seed, request.example_ids, row.decoder.options.num_decodes
  )
  count = 1
  if row.is_speculative:
    count += drafter.num_uniforms + drafter.max_draft_tokens
  table = loop.uniform_table(
      keys[row.index : row.index + 1], jnp.full((1,), decision.call), 1, count
  )
  words = np.asarray(table)[0, 0, decision.uniform].astype(np.float64)
  return tuple((words / 2**32).tolist())


def _bounds(
    first: near_ties.Row,
    second: near_ties.Row,
    sequence: np.ndarray,
    decision: Decision,
    logits: np.ndarray,
) -> np.ndarray:
  """Return what the uniform is compared with, [4, vocab] float64.

  The sequence, [length] int32, has the tokens before the decision. For the
  logits, [4, vocab], see `near_ties.path_logits`.
  """
  probs = _standardize(jnp.asarray(logits, jnp.float32), first.request.sampling)
  p = q = np.asarray(probs, np.float64)
  if decision.kind != _Kind.DRAW:
    draft_probs = []
    for row in (first, second):
      repeated = near_ties.repeat_row(row)
      _, along = acceptance.read_along(row.decoder, repeated, sequence)
      draft_probs.append(along[decision.position])
    # Both paths of a run have the same drafts.
    q = np.repeat(draft_probs, 2, axis=0).astype(np.float64)
  return _boundaries(decision.kind, p, q)


def _boundaries(
    kind: near_ties.Kind, p: np.ndarray, q: np.ndarray
) -> np.ndarray:
  """Return what a uniform is compared with, per path and token.

  It is the probability with which the token would be accepted, or the upper end
  of its interval of the inverse CDF. All are [paths, vocab] float64; a draw
  does not use q.
  """
  if kind == _Kind.ACCEPTANCE:
    # A token that is never drafted is never tested.
    return np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0))
  weights = q if kind == _Kind.DRAFT else p
  if kind == _Kind.RESAMPLED:
    # Without a residual, rounding caused the rejection: see `residual`.
    has_residual = np.any(p > q, axis=-1, keepdims=True)
    weights = np.where(has_residual, np.maximum(p - q, 0), p)
  cumulative = np.cumsum(weights, axis=-1)
  return cumulative / cumulative[:, -1:]


def _distance_to_drawing(
    token: int, uniform: tuple[float, float], bounds: np.ndarray
) -> float:
  """Return how far a uniform is from drawing a token, as a probability.

  The first word must lie in the interval of the token's block, and the second,
  spread over that interval, in the token's own.
  """
  ends = np.append(0, bounds)
  begin = token - token % sampling_lib.BLOCK
  end = min(begin + sampling_lib.BLOCK, len(bounds))
  outside = lambda x, i, j: max(ends[i] - x, x - ends[j], 0)
  inner = ends[begin] + uniform[1] * (ends[end] - ends[begin])
  return float(
      max(outside(uniform[0], begin, end), outside(inner, token, token + 1))
  )
