# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts and times of a run without its tokens, small enough to be stored."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from speculative_t5x.decoder import counts as counts_lib


@dataclasses.dataclass(frozen=True)
class Tally:
  """Counts and times of decoding some batches in one way.

  Attributes:
    counts: sums over the batches.
    seconds: one per batch, see `interleaved.Run`.
    compile_s: see `interleaved.Run`.
  """

  counts: counts_lib.Counts
  seconds: tuple[float, ...]
  compile_s: float | None

  @property
  def walltime_s(self) -> float:
    return float(np.sum(self.seconds))


def join(parts: Sequence[Tally]) -> Tally:
  """Returns the tally of all batches of several, in their order.

  The compilation time is that of the process that decoded the first part.
  """
  return Tally(
      counts_lib.add([part.counts for part in parts]),
      tuple(second for part in parts for second in part.seconds),
      parts[0].compile_s,
  )
