# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the rows of Figure 5: both loops and their parts, on one example."""

from collections.abc import Callable, Sequence
import functools
import sys

import numpy as np

from speculative_t5x.decoder import text_decoder
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.paper import loop_trace

ROUNDS = 15


def measure(
    decoder: text_decoder.TextDecoder,
    text: str,
    gammas: Sequence[int],
    *,
    rounds: int = ROUNDS,
) -> list[loop_trace.Row]:
  """Returns a row of plain decoding and one per gamma, timed interleaved.

  Args:
    decoder: whose loops are measured.
    text: its input, decoded at temperature 0.
    gammas: draft tokens per target call, one or several.
    rounds: how often loops and parts are timed; the medians count.
  Raises:
    ValueError: for gammas that are no list, or an empty one.
  """
  if not isinstance(gammas, Sequence) or not gammas:
    raise ValueError(
        f'Gammas must be a list of at least one, as (3, 7); got {gammas!r}.'
    )
  request, _ = decoder.make_request([text])
  drafter = decoder.tokens.loaded_drafter
  decoders = [decoder.tokens.with_drafter(drafter, g) for g in gammas]
  return _measure(decoders, request, rounds)


def _measure(
    decoders: Sequence[token_decoder.TokenDecoder],
    request: token_decoder.Request,
    rounds: int,
) -> list[loop_trace.Row]:
  all_parts = [
      step_times.Parts(part_programs.PartPrograms(decoder), request)
      for decoder in decoders
  ]
  ways = [decoders[0].plain, *(decoder.speculative for decoder in decoders)]
  num_steps = [int(way(request).num_steps) for way in ways]
  spans = []
  for _ in range(rounds):
    for parts in all_parts:
      parts.time_encoders(request)
      parts.time_round()
    spans.append([step_times.seconds(lambda w=w: w(request)) for w in ways])
  times = [parts.times() for parts in all_parts]
  makes = [functools.partial(loop_trace.plain_row, times[0])]
  for decoder, each in zip(decoders, times, strict=True):
    row = functools.partial(loop_trace.speculative_row, each, decoder.gamma)
    makes.append(row)
  walltimes_ms = np.median(spans, axis=0) * 1e3
  return list(map(_row, makes, num_steps, walltimes_ms))


def _row(make: Callable, num_steps: int, walltime_ms: float) -> loop_trace.Row:
  """Returns a row with its commits, or without if the parts took longer."""
  try:
    return make(num_steps, walltime_ms)
  except ValueError:
    print(
        'The parts took longer than the run that they make up, so commits are'
        ' left out of a row. Repeat on a quiet machine to see them.',
        file=sys.stderr,
    )
    return make(num_steps)
