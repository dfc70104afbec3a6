# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ways of decoding that take turns, and what their seconds and tokens say.

Legend: inputs, repeats, length (of the outputs).
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
from typing import Any

import numpy as np

from speculative_t5x import analysis
from speculative_t5x import speculation

# OpenMP's workers spin for some milliseconds when their work is done, in case
# there is more. They are given the time to fall asleep, or torch's and
# CTranslate2's would take a core from the way that is timed next.
PAUSE_S = 0.02

Decode = Callable[[], Sequence[int]]
Start = Callable[[np.ndarray], Decode]
Tokens = tuple[int, ...]
Record = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Way:
  """A way of decoding one input greedily.

  Both functions take an input, [inputs_length] int32 with padding, and return a
  function without arguments that decodes it: token ids, perhaps with an end of
  sequence and anything after it.

  Attributes:
    whole: its decoding begins with the token ids.
    from_encoded: its decoding begins with the output of the encoders, which run
      before; None for a system that cannot begin there.
  """

  whole: Start
  from_encoded: Start | None


@dataclasses.dataclass
class Timings:
  """What one way did with all inputs.

  Attributes:
    seconds: [inputs * repeats], filled input by input.
    written: [inputs], the tokens of each.
  """

  seconds: list[float] = dataclasses.field(default_factory=list)
  written: list[Tokens] = dataclasses.field(default_factory=list)


def until_end(ids: Sequence[int]) -> Tokens:
  """The token ids before the end of sequence; all where there is none."""
  ids = [int(i) for i in ids]
  if speculation.EOS_ID in ids:
    ids = ids[: ids.index(speculation.EOS_ID)]
  return tuple(ids)


def take_turns(
    decodes: Mapping[str, Decode],
    timings: Mapping[str, Timings],
    repeats: int,
    rng: np.random.Generator,
) -> None:
  """Decodes one input in every way, `repeats` times after a warm-up.

  The order is drawn anew at each repeat, so that no way always follows the
  same other one.

  Args:
    decodes: by name.
    timings: by name; the seconds and the tokens are added to them.
    repeats: how often each way is timed.
    rng: draws the orders.
  """
  for name, decode in decodes.items():
    timings[name].written.append(until_end(decode()))
  for _ in range(repeats):
    for name in rng.permutation(list(decodes)):
      time.sleep(PAUSE_S)
      timings[name].seconds.append(_seconds(decodes[name]))


def _seconds(decode: Decode) -> float:
  start = time.perf_counter()
  decode()
  return time.perf_counter() - start


def summarize(
    timings: Mapping[str, Timings], references: Sequence[str]
) -> Record:
  """What each way took, and that over what the references took.

  Args:
    timings: by name; the ways have decoded the same inputs as often.
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
  # Repeats of an input are alike, and no further evidence on others.
  of_inputs = lambda timings: np.reshape(
      timings.seconds, (len(timings.written), -1)
  ).sum(axis=1)
  return {
      'ratio': sum(own.seconds) / sum(reference.seconds),
      'ci95': analysis.ratio_interval(of_inputs(own), of_inputs(reference)),
  }


def compare_tokens(
    timings: Sequence[Mapping[str, Timings]], reference: str
) -> Record:
  """What each way wrote, against what one of them wrote.

  Args:
    timings: by name, a mapping for each place that decoding began at.
    reference: name of the way that the others are compared with, as it wrote
      in the first of them.
  Returns:
    By name: tokens, how many it wrote without ends of sequence, and
    rows_that_differ, how many inputs it wrote anything else for, from any of
    the places that it began at.
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
