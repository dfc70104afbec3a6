# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the rows of Figure 5: both loops and their parts, on one example."""

from collections.abc import Sequence
import sys

import numpy as np

from speculative_t5x.decoder import text_decoder
from speculative_t5x.research import arguments
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.paper import loop_trace

ROUNDS = 15


def measure(
    decoder: text_decoder.TextDecoder,
    text: str,
    gammas: int | Sequence[int],
    *,
    rounds: int = ROUNDS,
) -> list[loop_trace.Row]:
  """Return a row of plain decoding and one per gamma, timed interleaved.

  The text is decoded at temperature 0, and the medians of the rounds count.

  Raises:
    ValueError: for gammas that are not whole numbers of at least 1.
  """
  gammas = arguments.several_counts('gammas', gammas)
  request, _ = decoder.make_request([text])
  drafter = decoder.tokens.loaded_drafter
  decoders = [decoder.tokens.with_drafter(drafter, g) for g in gammas]
  all_parts = [
      step_times.Parts(part_programs.PartPrograms(each), request)
      for each in decoders
  ]
  ways = [decoders[0].plain, *(each.speculative for each in decoders)]
  num_steps = [int(way(request).num_steps) for way in ways]
  seconds = []
  for _ in range(rounds):
    for parts in all_parts:
      parts.time_encoders(request)
      parts.time_round()
    seconds.append([step_times.seconds(lambda w=w: w(request)) for w in ways])
  walltimes_ms = (np.median(seconds, axis=0) * 1e3).tolist()
  times = [parts.times() for parts in all_parts]
  rows = [loop_trace.plain_row(times[0], num_steps[0], walltimes_ms[0])]
  rows += [
      loop_trace.speculative_row(*each)
      for each in zip(times, gammas, num_steps[1:], walltimes_ms[1:])
  ]
  if any(row.spans[-1].kind != loop_trace.Kind.COMMIT for row in rows):
    print(
        'The parts took longer than the run that they make up, so commits are'
        ' left out of a row. Repeat on a quiet machine to see them.',
        file=sys.stderr,
    )
  return rows
