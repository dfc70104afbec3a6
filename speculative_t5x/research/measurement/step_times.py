# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times the parts of decoding, and adds them up to ideal loops."""

from collections.abc import Callable, Sequence
import dataclasses
import math
import time

import jax
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.research.measurement import part_programs

# Minimum seconds of a timed loop; with a large model, few steps take longer.
_LOOP_S = 0.25
_MIN_STEPS = 4


@dataclasses.dataclass(frozen=True)
class PartTimes:
  """Times of the parts of a run, in seconds (`_s`) and milliseconds (`_ms`)."""

  target_encoder_s: float  # on a batch or on all inputs of a run
  draft_encoder_s: float  # on the same inputs
  t1_ms: float  # a target step on one position
  t_verify_ms: float  # a target step on gamma + 1 positions
  t_draft_ms: float  # a draft step on one position
  t_draft2_ms: float  # a block's first draft step, on two positions
  t_call_ms: float | None = None  # a step of the loop, drafting, verification
  # A target step at each width of verification, where drafts may be short.
  t_width_ms: tuple[float, ...] = ()

  def plain_seconds(self, steps: float) -> float:
    """Return the seconds of ideal plain decoding, with the encoder."""
    return self.target_encoder_s + steps * self.t1_ms / 1e3

  def speculative_seconds(
      self, draft_steps: float, calls_by_width: Sequence[float]
  ) -> float:
    """Return the seconds of ideal speculative decoding, with both encoders.

    The steps waited for `draft_steps` draft tokens. `calls_by_width`, [widths],
    are target calls; of several widths, those at the first one had no draft.
    """
    if len(calls_by_width) > 1:
      width_ms, drafting = self.t_width_ms, calls_by_width[1:]
    else:  # such a loop verifies whole blocks only
      width_ms, drafting = (self.t_verify_ms,), calls_by_width
    verify_ms = np.dot(calls_by_width, width_ms)
    first = min(sum(drafting), draft_steps)
    later = draft_steps - first
    draft_ms = first * self.t_draft2_ms + later * self.t_draft_ms
    encoders_s = self.target_encoder_s + self.draft_encoder_s
    return encoders_s + float(draft_ms + verify_ms) / 1e3


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
    names = (*encoders, *self._programs, 't_draft', 't_verify')
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
    gamma = self._decoder.options.gamma
    later = max(gamma, 2) - 1
    spans['t_draft'] = max(drafts - spans['t_draft2'], 0.0) / later
    if 't_verify' not in spans:  # a tree: the rest of a step
      drafts = spans['t_draft2'] + (gamma - 1) * spans['t_draft']
      spans['t_verify'] = max(spans['t_call'] - drafts, 0.0)
    for name, span in spans.items():
      self.seconds[name].append(span / self.num_steps)

  def times(self, encoded: slice = slice(None)) -> PartTimes:
    """Return the median times of all rounds, and timings of the encoders."""
    median = lambda name, part: float(np.median(self.seconds[name][part]))
    ms = lambda name: median(name, slice(None)) * 1e3
    steps = 't1', 't_verify', 't_draft', 't_draft2', 't_call'
    return PartTimes(
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
