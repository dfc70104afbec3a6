# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The same batches decoded plainly and speculatively, each timed."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import time
from typing import Any

import jax
import numpy as np

from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import report
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches

WARMUP = 2  # untimed calls of each way: one compiles, one runs


@dataclasses.dataclass(frozen=True)
class Run:
  """One way of decoding some batches."""

  counts: counts_lib.Counts  # sums over the batches
  # One per batch, from token ids on the device to token ids on the device, the
  # encoders included, no compilation; the median of the repeats.
  seconds: tuple[float, ...]
  compile_s: float | None  # see `compilation_cache.compile_seconds`
  # One per batch, as numpy arrays, padding rows included; None if stored.
  decoded: list[report.Report] | None = None
  steps: tuple[int, ...] = ()  # per batch; none if an earlier version stored it

  @property
  def walltime_s(self) -> float:
    return float(np.sum(self.seconds))

  def stored(self) -> dict[str, Any]:
    """Return the run without its tokens, as JSON; see `join`."""
    return {
        'counts': dataclasses.asdict(self.counts),
        'seconds': self.seconds,
        'compile_s': self.compile_s,
        'steps': self.steps,
    }


def join(parts: Sequence[Mapping[str, Any]]) -> Run:
  """Return the run of all batches of several, stored ones in their order."""
  runs = [run_record.from_dict(part, Run) for part in parts]
  are_known = all(run.steps for run in runs)
  return Run(
      counts_lib.add([run.counts for run in runs]),
      tuple(second for run in runs for second in run.seconds),
      runs[0].compile_s,
      steps=sum((run.steps for run in runs), ()) if are_known else (),
  )


def order(num_ways: int, number: int) -> list[int]:
  """Return the ways in the order of a round, given by its number.

  Which way came before matters: it leaves its data in the caches. Over
  `num_ways` rounds (twice as many for an odd number) each way has each place
  equally often, and each other way right before it equally often.

  Reference: Williams (1949), designs balanced for residual effects.
  """
  zigzag = [(i + 1) // 2 * (-1) ** (i + 1) for i in range(num_ways)]
  if num_ways % 2 and number // num_ways % 2:
    zigzag.reverse()
  return [(way + number) % num_ways for way in zigzag]


class Timer:
  """Decodes each batch in all of several ways, and times each; see `order`."""

  def __init__(self, ways: Sequence[whole_batches.Way], *, repeats: int = 1):
    self._ways = ways
    self._repeats = repeats
    self._compile_s: list[float | None] | None = None

  def warm_up(self, batch: input_batch.InputBatch) -> None:
    """Compile the ways by untimed calls, unless that was done before."""
    if self._compile_s is None:
      progress.say('compiling and warming up')
      self._compile_s = [
          compilation_cache.compile_seconds(
              lambda way=way: _timed(way, batch)[1]
          )
          for way in self._ways
      ]

  def run(
      self,
      batches: Sequence[input_batch.InputBatch],
      *,
      first: int = 0,
      before: Callable[[int], object] = lambda number: None,
      after: Callable[[int], object] = lambda num_done: None,
  ) -> tuple[Run, ...]:
    """Decode batches of one shape; return one run per way.

    `first` is the number of the first batch in the job. `before` gets the
    number of each batch, and `after` the number of batches done in the job.
    """
    self.warm_up(batches[0])
    decoded = [[] for _ in self._ways]
    seconds = np.zeros((len(self._ways), len(batches), self._repeats))
    for index, batch in enumerate(batches):
      before(first + index)
      for repeat in range(self._repeats):
        outputs = [None] * len(self._ways)
        for way in order(len(self._ways), first + index + repeat):
          outputs[way], seconds[way, index, repeat] = _timed(
              self._ways[way], batch
          )
      for way, output in enumerate(outputs):
        decoded[way].append(jax.device_get(output))
      after(first + index + 1)
    medians = np.median(seconds, axis=-1).tolist()
    return tuple(
        Run(
            _count(own),
            tuple(spans),
            compile_s,
            own,
            tuple(int(each.work.num_steps) for each in own),
        )
        for own, spans, compile_s in zip(
            decoded, medians, self._compile_s, strict=True
        )
    )


def _count(batches: Sequence[report.Report]) -> counts_lib.Counts:
  rows = [len(batch.num_calls) for batch in batches]
  steps = [int(batch.work.num_steps) for batch in batches]
  decodes = (x.decode(row) for x in batches for row in range(len(x.num_calls)))
  return counts_lib.of_run(decodes, sum(steps), int(np.dot(rows, steps)))


def _timed(way: whole_batches.Way, batch) -> tuple[report.Report, float]:
  # A call returns before it has run: the next one would pay for it.
  start = time.perf_counter()
  output = jax.block_until_ready(way(batch))
  return output, time.perf_counter() - start


def speedup(plain: Run, speculative: Run) -> float:
  """Return plain over speculative walltime on the same examples."""
  return plain.walltime_s / speculative.walltime_s
