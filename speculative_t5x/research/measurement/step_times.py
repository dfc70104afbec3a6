# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times the parts of decoding."""

from collections.abc import Callable
import math
import time

import jax
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import part_sums

# Minimum seconds of a timed loop; with a large model, few steps take longer.
_LOOP_S = 0.25
_MIN_STEPS = 4


class Parts:
  """The parts of a pair's decoding, timed in rounds.

  Attributes:
    num_steps: Steps per run of a loop.
    seconds: Seconds by part: of `encoder_target` and `encoder_draft` one value
      per batch that they were timed on, and of a step of `t1`, `t_verify`,
      `t_draft2`, `t_draft`, `t_call` (see `docs/run_record.md`) and of
      `PartPrograms.width_names` one value per round.
  """

  def __init__(
      self,
      programs: part_programs.PartPrograms,
      batch: input_batch.InputBatch,
  ):
    """Run each part once, on a batch of the shape to decode, to compile it."""
    self._decoder = programs.decoder
    self._width_names = programs.width_names.values()
    self._bind_encoders = programs.bind_encoders
    batch = self._decoder.place(batch)
    with self._decoder.scope():
      single = programs.bind(batch, 1)
      encoders = self._bind_encoders(batch)
      for program in (*encoders.values(), *single.values()):
        jax.block_until_ready(program())
      wanted = math.ceil(_LOOP_S / seconds(single['t1']))
      most = part_programs.MAX_STEPS
      self.num_steps = min(max(wanted, _MIN_STEPS), most)
      self._programs = programs.bind(batch, self.num_steps)
    names = (*encoders, *self._programs, 't_draft')
    self.seconds: dict[str, list[float]] = {
        name: [] for name in names if name != 'drafts'
    }

  def time_encoders(self, batch: input_batch.InputBatch) -> None:
    """Time what reads the inputs of a batch, once."""
    batch = self._decoder.place(batch)
    with self._decoder.scope():
      for name, program in self._bind_encoders(batch).items():
        self.seconds[name].append(seconds(program))

  def time_round(self) -> None:
    """Time a step of every loop once."""
    with self._decoder.scope():
      spans = {name: seconds(run) for name, run in self._programs.items()}
    drafts = spans.pop('drafts')
    later = max(self._decoder.options.gamma, 2) - 1
    spans['t_draft'] = max(drafts - spans['t_draft2'], 0.0) / later
    for name, span in spans.items():
      self.seconds[name].append(span / self.num_steps)

  def times(
      self, rounds: slice = slice(None), encoded: slice = slice(None)
  ) -> part_sums.PartTimes:
    """Return the median times of some rounds, and timings of the encoders."""
    median = lambda name, part: float(np.median(self.seconds[name][part]))
    ms = lambda name: median(name, rounds) * 1e3
    steps = 't1', 't_verify', 't_draft', 't_draft2', 't_call'
    return part_sums.PartTimes(
        median('encoder_target', encoded),
        median('encoder_draft', encoded),
        *map(ms, steps),
        tuple(map(ms, self._width_names)),
    )


def seconds(program: Callable[[], object]) -> float:
  """Return the seconds of one call, until its results are ready."""
  start = time.perf_counter()
  jax.block_until_ready(program())
  return time.perf_counter() - start
