# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times the parts of decoding.

Legend: gamma (draft tokens per block).
"""

from collections.abc import Callable, Hashable, Mapping
import math
import time

import jax
import numpy as np

from speculative_t5x import token_decoder
from speculative_t5x.measurement import part_programs
from speculative_t5x.measurement import part_sums

# Minimum seconds of a timed loop; with a large model, few steps take longer.
_LOOP_S = 0.25
_MIN_STEPS = 4


class Parts:
  """The parts of a pair's decoding, timed in rounds.

  Attributes:
    num_steps: steps per run of a loop.
    seconds: seconds by part, one value per round: `encoder_target` and
      `encoder_draft` on one batch, and one step of `t1`, `t_verify`,
      `t_draft2`, `t_draft`, `t_call` (see `docs/run_record.md`) and of
      `part_programs.width_names`.
  """

  def __init__(
      self,
      programs: part_programs.PartPrograms,
      request: token_decoder.Request,
  ):
    """Runs each part once to compile it.

    Args:
      programs: programs of the pair's parts.
      request: a batch of the shape to decode.
    """
    self._decoder = programs.decoder
    request = self._decoder.place(request)
    with self._decoder.scope():
      single = programs.bind(request, 1)
      for program in single.values():
        jax.block_until_ready(program())
      wanted = math.ceil(_LOOP_S / seconds(single['t1']))
      most = part_programs.MAX_STEPS
      self.num_steps = min(max(wanted, _MIN_STEPS), most)
      self._programs = programs.bind(request, self.num_steps)
    names = (*self._programs, 't_draft')
    self.seconds: dict[str, list[float]] = {
        name: [] for name in names if name != 'drafts'
    }

  def time_round(self) -> None:
    """Times every part once."""
    with self._decoder.scope():
      spans = {name: seconds(run) for name, run in self._programs.items()}
    drafts = spans.pop('drafts')
    later = max(self._decoder.gamma, 2) - 1
    spans['t_draft'] = max(drafts - spans['t_draft2'], 0.0) / later
    for name, span in spans.items():
      is_loop = not name.startswith('encoder')
      self.seconds[name].append(span / self.num_steps if is_loop else span)

  def times(self, rounds: slice = slice(None)) -> part_sums.StepTimes:
    """Returns the median times; those of the encoders are for one batch.

    Args:
      rounds: the rounds to use; by default all.
    """
    median = lambda name: float(np.median(self.seconds[name][rounds]))
    steps = ('t1', 't_verify', 't_draft', 't_draft2')
    return part_sums.StepTimes(
        median('encoder_target'),
        median('encoder_draft'),
        *(median(name) * 1e3 for name in steps),
    )

  def width_ms(self, rounds: slice = slice(None)) -> tuple[float, ...]:
    """Returns the median milliseconds of verification at each width.

    Args:
      rounds: the rounds to use; by default all.
    """
    names = part_programs.width_names(self._decoder.gamma).values()
    return tuple(
        float(np.median(self.seconds[name][rounds])) * 1e3 for name in names
    )

  def call_ms(self) -> float:
    """Returns the median milliseconds of a step, drafting and verification."""
    return float(np.median(self.seconds['t_call'])) * 1e3


def seconds(program: Callable[[], object]) -> float:
  """Returns the seconds of one call, until its results are ready."""
  start = time.perf_counter()
  jax.block_until_ready(program())
  return time.perf_counter() - start


def seconds_interleaved(
    programs: Mapping[Hashable, Callable[[], object]], repeats: int
) -> dict[Hashable, np.ndarray]:
  """Times programs interleaved, after a warm-up.

  Returns:
    Seconds of each program, [repeats].
  """
  for program in programs.values():
    jax.block_until_ready(program())
  rounds = [
      [seconds(program) for program in programs.values()]
      for _ in range(repeats)
  ]
  return dict(zip(programs, np.transpose(rounds), strict=True))
