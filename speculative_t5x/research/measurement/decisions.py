# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the first decision that two runs of the same row made differently.

At temperature 0, and in plain decoding, it is the first token that differs. A
speculative sample consists of several decisions per target call, and two runs
may differ in one of them before their tokens do: one run accepts a draft
token that the other run resamples. Both rows are therefore decoded again, and
their target calls are compared.

Legend: length (of the outputs), gamma (draft tokens per block).
"""

import dataclasses
import enum

import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research.measurement import tracing
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification


class Kind(enum.StrEnum):
  """What was decided; p is the target's distribution and q the drafter's."""

  ARGMAX = 'argmax'  # the likeliest token, at temperature 0
  DRAW = 'draw'  # a token from p: of plain decoding, or a bonus token
  DRAFT = 'draft'  # a draft token from q
  ACCEPTANCE = 'acceptance'  # whether a draft token is accepted: u < p / q
  RESAMPLED = 'resampled'  # a token from max(0, p - q)


@dataclasses.dataclass(frozen=True)
class Output:
  """What a run wrote for a row.

  Attributes:
    decoder: decoder of the run.
    request: the batch that had the row.
    row: index of the row in it, among all decodes of all examples.
    is_speculative: whether the run decoded speculatively.
    sequence: [length] int32, padded.
  """

  decoder: token_decoder.TokenDecoder
  request: requests_lib.Request
  row: int
  is_speculative: bool
  sequence: np.ndarray

  @property
  def block(self) -> int:
    """Positions per target call."""
    return self.decoder.gamma + 1 if self.is_speculative else 1


@dataclasses.dataclass(frozen=True)
class Decision:
  """A decision that two runs of a row made differently.

  Attributes:
    kind: what was decided.
    position: position of the token that it was about.
    tokens: what each run wrote, or drafted, there.
    context: [length] int32, the tokens before the position.
    draft_token: the one that a run accepted and the other did not; None for
      other decisions.
    uniform: the two words that decided, each divided by 2^32; None at
      temperature 0. A draw picks a block of tokens by the first and a token in
      it by the second; a coin is the first, and the second its finer digits.
  """

  kind: Kind
  position: int
  tokens: tuple[int, int]
  context: np.ndarray
  draft_token: int | None = None
  uniform: tuple[float, float] | None = None


def first_difference(first: Output, second: Output) -> tuple[int, list[int]]:
  """Returns the first position at which tokens differ, and both tokens."""
  rows = np.stack([first.sequence, second.sequence])
  position = int(np.flatnonzero(rows[0] != rows[1])[0])
  return position, rows[:, position].tolist()


def find(first: Output, second: Output) -> Decision | None:
  """Returns the first decision that two runs made differently.

  Args:
    first: what the one run wrote.
    second: what the other run wrote, with other tokens. Above temperature 0,
      both runs are of the same kind, with the same seed, sampling, drafter and
      gamma.
  Returns:
    The decision; None if a sample is not what its run gives when it is repeated
    here, or if a drafter chose its draft tokens by other means than one uniform
    per token.
  Raises:
    ValueError: for speculative samples of another rule than the paper's.
  """
  temperature = float(first.request.sampling.temperature)
  is_greedy = temperature <= sampling_lib.MIN_TEMPERATURE
  if first.is_speculative and not is_greedy:
    check_rule(first.request.rule.name)
    return _find_in_calls(first, second)
  position, tokens = first_difference(first, second)
  kind, uniform = Kind.ARGMAX, None
  if not is_greedy:
    # Each call of plain decoding writes one token and has one uniform.
    kind, (uniform,) = Kind.DRAW, _uniforms(first, position, 1)
  context = first.sequence
  return Decision(kind, position, tuple(tokens), context, uniform=uniform)


def check_rule(name: str) -> None:
  """Checks that the decisions of speculative samples are known.

  Args:
    name: name of the rule.
  Raises:
    ValueError: for another rule than the paper's.
  """
  if name != verification.TOKENWISE.name:
    raise ValueError(
        f'The decisions of the rule {name} are not known: samples can be'
        ' compared if their rule is tokenwise. Compare runs at temperature 0,'
        ' or plain ones.'
    )


def _uniforms(
    output: Output, call: int, count: int
) -> list[tuple[float, float]]:
  """Returns the uniforms of a target call of the row, see `Decision`."""
  request = output.request
  keys = state_lib.row_keys(
      request.seed, request.example_ids, output.decoder.num_decodes
  )
  table = loop.uniform_table(
      keys[output.row : output.row + 1], jnp.full((1,), call), 1, count
  )
  words = np.asarray(table)[0, 0].astype(np.float64)
  return [tuple(pair) for pair in (words / 2**32).tolist()]


def _find_in_calls(first: Output, second: Output) -> Decision | None:
  """Decodes both rows again, and compares their target calls in order."""
  end = first_difference(first, second)[0] + 1
  runs = []
  for output in (first, second):
    calls = tracing.calls(output.decoder, output.request, output.row)
    written = [t for c in calls for t in c.tokens[: c.num_committed]]
    if written[:end] != output.sequence[:end].tolist()[: len(written)]:
      return None
    runs.append(calls)
  for number, (one, other) in enumerate(zip(*runs)):
    if (found := _find_in_call(first, number, one, other)) is not None:
      return found
  return None


def _find_in_call(
    output: Output,
    number: int,
    one: outcome_lib.Outcome,
    other: outcome_lib.Outcome,
) -> Decision | None:
  """Returns the first decision of a target call that two runs made differently.

  Args:
    output: what the run that made `one` wrote.
    number: number of the call; the calls before it are equal.
    one: outcome of the call in the one run.
    other: outcome of the call in the other run.
  """
  drafter = output.decoder.drafter
  gamma, own = drafter.max_draft_tokens, drafter.num_uniforms
  index = min(int(one.num_accepted), int(other.num_accepted))
  # Draft tokens behind a rejected one were drafted in vain.
  tested = min(index + 1, int(max(one.num_drafted, other.num_drafted)))
  drafts = np.stack([one.draft_tokens[:tested], other.draft_tokens[:tested]])
  rows, draft_token = np.stack([one.tokens, other.tokens]), None
  # A call has the drafter's uniforms, then a coin per draft token, and last the
  # uniform of the resampled or bonus token.
  if np.any(drafts[0] != drafts[1]):
    if own != gamma:  # which of its uniforms decided is not known
      return None
    index = int(np.flatnonzero(drafts[0] != drafts[1])[0])
    kind, rows, uniform = Kind.DRAFT, drafts, index
  elif one.num_accepted != other.num_accepted:
    kind, uniform = Kind.ACCEPTANCE, own + index
    draft_token = int(one.draft_tokens[index])
  elif not one.is_cut_short and one.tokens[index] != other.tokens[index]:
    kind = Kind.RESAMPLED if one.is_rejected else Kind.DRAW
    uniform = own + gamma
  else:
    return None
  before = int(one.num_before)
  context = output.sequence.copy()
  context[before : before + index] = one.draft_tokens[:index]
  return Decision(
      kind,
      before + index,
      tuple(rows[:, index].tolist()),
      context,
      draft_token,
      _uniforms(output, number, own + gamma + 1)[uniform],
  )
