# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which draft tokens each target call accepted: the data of Figure 1."""

import dataclasses

import jax

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.speculation import outcome as outcome_lib


@dataclasses.dataclass(frozen=True)
class Block:
  """The tokens of one target call.

  Attributes:
    accepted: Draft tokens that the target accepted.
    rejected: The first draft token that it rejected, or None. The draft tokens
      after it were discarded untested.
    from_target: The resampled token after a rejection, else the bonus token;
      None if the row ended within its accepted draft tokens.
  """

  accepted: tuple[int, ...]
  rejected: int | None
  from_target: int | None

  @property
  def num_committed(self) -> int:
    """Tokens that the call added to the output."""
    return len(self.accepted) + (self.from_target is not None)


def trace(
    decoder: token_decoder.TokenDecoder, request: requests_lib.Request
) -> list[Block]:
  """Decode a request and return the blocks of its first row, in order."""
  trace = jax.device_get(decoder.traced(request))
  at_call = lambda call: jax.tree.map(lambda x: x[call, 0], trace.outcomes)
  calls = map(at_call, range(int(trace.num_steps)))
  return [_block(call) for call in calls if call.is_active]


def _block(outcome: outcome_lib.Outcome) -> Block:
  num_accepted = int(outcome.num_accepted)
  from_target = None
  if not outcome.is_cut_short:
    from_target = int(outcome.tokens[num_accepted])
  rejected = None
  if outcome.is_rejected:
    rejected = int(outcome.draft_tokens[num_accepted])
  accepted = tuple(outcome.tokens[:num_accepted].tolist())
  return Block(accepted, rejected, from_target)
