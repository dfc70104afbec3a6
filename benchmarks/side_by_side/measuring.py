# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times ways of decoding interleaved, and compares their times and tokens.

Legend: inputs, repeats, length (of the outputs).
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
from typing import Any

import numpy as np

from speculative_t5x.measurement import intervals
from speculative_t5x.networks import t5_model

# Threads spin for some milliseconds after their work. The pause lets them go to
# sleep, so that those of one system do not occupy a core while the next one is
# timed.
PAUSE_S = 0.02

PLACES = 'whole', 'from_encoded'  # where decoding starts, see `Way`

Decode = Callable[[], Sequence[int]]
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
    whole: decodes from the token ids.
    from_encoded: decodes from the output of the encoders, which are not timed;
      None for a system that cannot.
  """

  whole: Start
  from_encoded: Start | None


@dataclasses.dataclass(frozen=True)
class Interleaved:
  """A way of decoding that is timed interleaved with others.

  Attributes:
    decode: decodes, and returns the token ids.
    seconds: decodes, and returns the seconds that it took.
  """

  decode: Decode
  seconds: Callable[[], float]


@dataclasses.dataclass
class Timings:
  """The times and outputs of one way of decoding, for all inputs.

  Attributes:
    seconds: [inputs * repeats], in the order of inputs.
    written: [inputs] output tokens.
  """

  seconds: list[float] = dataclasses.field(default_factory=list)
  written: list[Tokens] = dataclasses.field(default_factory=list)


def until_end(ids: Sequence[int]) -> Tokens:
  """Returns the token ids before EOS; all if there is no EOS."""
  ids = [int(i) for i in ids]
  if t5_model.SPECIAL_IDS.end in ids:
    ids = ids[: ids.index(t5_model.SPECIAL_IDS.end)]
  return tuple(ids)


def time_interleaved(
    interleaved: Mapping[str, Interleaved],
    timings: Mapping[str, Timings],
    repeats: int,
    rng: np.random.Generator,
) -> None:
  """Decodes an input in every way, `repeats` times after a warm-up.

  The order is random in each repeat, so that no way always follows the same
  other one.

  Args:
    interleaved: what each way does, by its name.
    timings: timings by name, to which seconds and tokens are added.
    repeats: number of times that each way is timed.
    rng: generator of the orders.
  """
  for name, way in interleaved.items():
    timings[name].written.append(until_end(way.decode()))
  for _ in range(repeats):
    for name in rng.permutation(list(interleaved)):
      time.sleep(PAUSE_S)
      timings[name].seconds.append(interleaved[name].seconds())


def seconds(decode: Callable[[], object]) -> float:
  """Returns the walltime of a call."""
  start = time.perf_counter()
  decode()
  return time.perf_counter() - start


def summarize(
    timings: Mapping[str, Timings], references: Sequence[str]
) -> Record:
  """Returns the time of each way, and its ratios to the references.

  Args:
    timings: timings by name, for the same inputs and repeats.
    references: names of ways. One that was not timed is left out.
  Returns:
    By name: walltime_s, and `over_<reference>` with the ratio of the totals and
    its 95 percent interval, a paired bootstrap over inputs (null for too few).
  """
  return {
      name: {
          'walltime_s': sum(own.seconds),
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
  of_inputs = lambda timings: np.reshape(
      timings.seconds, (len(timings.written), -1)
  ).sum(axis=1)
  return {
      'ratio': sum(own.seconds) / sum(reference.seconds),
      'ci95': intervals.ratio_interval(of_inputs(own), of_inputs(reference)),
  }


def compare_tokens(
    timings: Sequence[Mapping[str, Timings]], reference: str
) -> Record:
  """Compares the outputs of each way with those of one of them.

  Args:
    timings: timings by name, one mapping per start of decoding.
    reference: name of the way to compare with; its outputs in the first mapping
      are used.
  Returns:
    By name: tokens, the number of output tokens without EOS, and
    rows_that_differ, the number of inputs with a different output from any
    start.
  """
  expected = timings[0][reference].written

  def differs(name: str, row: int) -> bool:
    return any(
        each[name].written[row] != expected[row]
        for each in timings
        if name in each
    )

  return {
      name: {
          'tokens': sum(len(row) for row in own.written),
          'rows_that_differ': sum(
              differs(name, row) for row in range(len(expected))
          ),
      }
      for name, own in timings[0].items()
  }
