# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the decision at which two runs of the same row part.

At temperature 0, and in plain decoding, it is the first token that differs. A
speculative sample consists of several decisions per target call, and two runs
may part at one of them before their tokens differ: one run accepts a draft
token that the other run resamples. Both rows are therefore decoded again, and
their target calls are compared.

Legend: length (of the outputs), gamma (draft tokens per block).
"""

import dataclasses
import enum

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import token_decoder
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
    decoder: of the run.
    request: the batch that had the row.
    row: index of the row in it, among all decodes of all examples.
    is_speculative: whether the run decoded speculatively.
    sequence: [length] int32, padded.
  """

  decoder: token_decoder.TokenDecoder
  request: token_decoder.Request
  row: int
  is_speculative: bool
  sequence: np.ndarray

  @property
  def is_greedy(self) -> bool:
    """Whether the row was decoded at temperature 0."""
    temperature = float(self.request.sampling.temperature)
    return temperature <= sampling_lib.MIN_TEMPERATURE

  @property
  def block(self) -> int:
    """Positions per target call."""
    return self.decoder.gamma + 1 if self.is_speculative else 1


@dataclasses.dataclass(frozen=True)
class Decision:
  """A decision that two runs of a row made differently.

  Attributes:
    kind: what was decided.
    position: of the token that it was about.
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


def first_difference(first: Output, second: Output) -> int:
  """Returns the position of the first token that differs."""
  return int(np.flatnonzero(first.sequence != second.sequence)[0])


def find(first: Output, second: Output) -> Decision | None:
  """Returns the decision at which two runs part.

  Args:
    first: of the one run.
    second: of the other, with other tokens. Above temperature 0, both are of
      the same kind of run, with the same seed, sampling, drafter and gamma.
  Returns:
    The decision; None if a sample is not what its run gives when it is repeated
    here, or if a drafter chose its draft tokens by other means than one uniform
    per token.
  Raises:
    ValueError: for speculative samples of another rule than the paper's.
  """
  if first.is_speculative and not first.is_greedy:
    check_rule(first.request.rule.name)
    return _of_blocks(first, second)
  position = first_difference(first, second)
  tokens = int(first.sequence[position]), int(second.sequence[position])
  found = Decision(Kind.ARGMAX, position, tokens, first.sequence)
  if first.is_greedy:
    return found
  # Each call of plain decoding writes one token and has one uniform.
  (uniform,) = _uniforms(first, position, 1)
  return dataclasses.replace(found, kind=Kind.DRAW, uniform=uniform)


def check_rule(name: str) -> None:
  """Checks that the decisions of speculative samples are known.

  Args:
    name: of the rule.
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


def _of_blocks(first: Output, second: Output) -> Decision | None:
  end = first_difference(first, second) + 1
  runs = _calls(first), _calls(second)
  for output, calls in zip((first, second), runs, strict=True):
    written = [t for c in calls for t in c.tokens[: c.num_committed]]
    if written[:end] != output.sequence[:end].tolist()[: len(written)]:
      return None
  for number, calls in enumerate(zip(*runs)):
    if (found := _part(first, number, *calls)) is not None:
      return found
  return None


def _calls(output: Output) -> list[outcome_lib.Outcome]:
  """Decodes the batch again and returns the row's target calls."""
  trace = jax.device_get(output.decoder.traced(output.request))
  at_call = lambda call: jax.tree.map(
      lambda x: x[call, output.row], trace.outcomes
  )
  calls = map(at_call, range(int(trace.num_steps)))
  return [call for call in calls if call.is_active]


def _part(
    output: Output,
    number: int,
    one: outcome_lib.Outcome,
    other: outcome_lib.Outcome,
) -> Decision | None:
  """Returns the first decision of a target call that two runs made differently.

  Args:
    output: of the run that made `one`.
    number: of the call; before it the runs do not differ.
    one: outcome of the call in the one run.
    other: in the other.
  """
  drafter = output.decoder.drafter
  gamma, own = drafter.max_draft_tokens, drafter.num_uniforms
  uniforms = _uniforms(output, number, own + gamma + 1)
  before, accepted = int(one.num_before), int(one.num_accepted)
  last = min(accepted, int(other.num_accepted))

  def decide(kind, index, tokens, uniform, draft_token=None):
    context = output.sequence.copy()
    context[before : before + index] = one.draft_tokens[:index]
    position = before + int(index)
    tokens = tuple(int(row[index]) for row in tokens)
    return Decision(kind, position, tokens, context, draft_token, uniform)

  # Draft tokens behind a rejected one were drafted in vain.
  tested = min(last + 1, int(max(one.num_drafted, other.num_drafted)))
  drafts = one.draft_tokens[:tested], other.draft_tokens[:tested]
  committed = one.tokens, other.tokens
  for index in np.flatnonzero(drafts[0] != drafts[1]):
    if own != gamma:  # which of its uniforms decided is not known
      return None
    return decide(Kind.DRAFT, index, drafts, uniforms[index])
  if accepted != other.num_accepted:
    return decide(
        Kind.ACCEPTANCE,
        last,
        committed,
        uniforms[own + last],
        int(one.draft_tokens[last]),
    )
  if not one.is_cut_short and one.tokens[last] != other.tokens[last]:
    kind = Kind.RESAMPLED if one.is_rejected else Kind.DRAW
    return decide(kind, last, committed, uniforms[own + gamma])
  return None
