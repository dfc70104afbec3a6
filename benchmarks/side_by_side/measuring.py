# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times ways of decoding interleaved, and compares their times and tokens.

Ways take turns, and each decodes a round of several inputs in its turn. What is
decoded first in a turn is not timed: it follows the decoding of another
process, whose weights are then in the caches in the place of its own.

Legend: inputs, repeats, length (of the outputs).
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
from typing import Any

import numpy as np

from speculative_t5x.networks import t5
from speculative_t5x.research.measurement import intervals

# Threads spin for some milliseconds after their work. The pause lets them go to
# sleep, so that those of one system do not occupy a core while the next one is
# timed.
PAUSE_S = 0.02

PLACES = 'whole', 'from_encoded'  # where decoding starts, see `Way`

ROUND_INPUTS = 4  # inputs that are timed in a turn

Decode = Callable[[], Sequence[int]]
Turn = Callable[[], Sequence[float]]  # returns the seconds of each input
Start = Callable[[np.ndarray], Decode]
Tokens = tuple[int, ...]
Record = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Way:
  """A way of decoding one input greedily.

  Both functions take an input, [inputs_length] int32 with padding, and return a
  function without arguments that decodes it. The latter returns token ids,
  possibly with EOS and any ids after it.

  Attributes:
    whole: Decodes from the token ids.
    from_encoded: Decodes from the output of the encoders, which are not timed;
      None for a system that cannot.
  """

  whole: Start
  from_encoded: Start | None


@dataclasses.dataclass
class Timings:
  """The times and outputs of one way of decoding, for all inputs.

  Attributes:
    seconds: [inputs, repeats].
    written: [inputs] output tokens.
  """

  seconds: list[Sequence[float]] = dataclasses.field(default_factory=list)
  written: list[Tokens] = dataclasses.field(default_factory=list)


def until_end(ids: Sequence[int]) -> Tokens:
  """Return the token ids before EOS; all if there is no EOS."""
  ids = [int(i) for i in ids]
  if t5.SPECIAL_IDS.end in ids:
    ids = ids[: ids.index(t5.SPECIAL_IDS.end)]
  return tuple(ids)


def time_round(
    ways: Mapping[str, Turn],
    timings: Mapping[str, Timings],
    repeats: int,
    rng: np.random.Generator,
) -> None:
  """Decode a round of inputs in every way, `repeats` times.

  The order is random in each repeat, so that no way always follows the same
  other one.

  Args:
    ways: The turn of each way, by its name.
    timings: Timings by name, to which seconds are added.
    repeats: Number of times that each input is timed.
    rng: Generator of the orders.
  """
  taken = {name: [] for name in ways}
  for _ in range(repeats):
    for name in rng.permutation(list(ways)):
      time.sleep(PAUSE_S)
      taken[name].append(ways[name]())
  for name, turns in taken.items():
    timings[name].seconds += zip(*turns, strict=True)


def take_turn(decodes: Sequence[Decode]) -> list[float]:
  """Decode the inputs of a round, after the last of them without timing it.

  Returns:
    The seconds of each.
  """
  decodes[-1]()
  return [seconds(decode) for decode in decodes]


def seconds(decode: Callable[[], object]) -> float:
  """Return the walltime of a call."""
  start = time.perf_counter()
  decode()
  return time.perf_counter() - start


def summarize(
    timings: Mapping[str, Timings], references: Sequence[str]
) -> Record:
  """Return the time of each way, and its ratios to the references.

  Args:
    timings: Timings by name, for the same inputs and repeats.
    references: Names of ways. One that was not timed is left out.
  Returns:
    By name: walltime_s, and `over_<reference>` with the ratio of the totals and
    its 95 percent interval over inputs (null for too few).
  """
  return {
      name: {
          'walltime_s': float(np.sum(own.seconds)),
          **{
              f'over_{reference}': _ratio(own, timings[reference])
              for reference in references
              if reference in timings and reference != name
          },
      }
      for name, own in timings.items()
  }


def _ratio(own: Timings, reference: Timings) -> Record:
  # Repeats of an input are not independent, so they are summed per input.
  times, others = (np.sum(x.seconds, axis=1) for x in (own, reference))
  return {
      'ratio': float(np.sum(times) / np.sum(others)),
      'ci95': intervals.ratio_interval(times, others),
  }


def compare_tokens(
    timings: Sequence[Mapping[str, Timings]], reference: str
) -> Record:
  """Compare the outputs of each way with those of one of them.

  Args:
    timings: Timings by name, one mapping per start of decoding.
    reference: Name of the way to compare with; its outputs in the first mapping
      are used.
  Returns:
    By name: tokens, the number of output tokens without EOS, and
    rows_that_differ, the number of inputs with a different output from any
    start.
  """
  expected = timings[0][reference].written
  record = {}
  for name, own in timings[0].items():
    rows = zip(expected, *(x[name].written for x in timings if name in x))
    record[name] = {
        'tokens': sum(map(len, own.written)),
        'rows_that_differ': sum(len(set(each)) > 1 for each in rows),
    }
  return record
