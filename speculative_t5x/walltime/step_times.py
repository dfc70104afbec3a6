# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The times of the parts that decoding consists of.

Legend: gamma (guesses a block).
"""

from collections.abc import Callable, Hashable, Mapping
import time

import jax
import numpy as np

from speculative_t5x import analysis
from speculative_t5x import token_decoder
from speculative_t5x.walltime import part_programs


class Parts:
  """The parts of a pair's decoding, to be timed in rounds.

  Attributes:
    seconds: by name, a value for each round: the encoders `encoder_target` and
      `encoder_draft` on one batch, and a step each of `t1`, `t_verify`,
      `t_draft2`, `t_draft` and `t_call` (see `docs/run_record.md`).
  """

  def __init__(
      self,
      programs: part_programs.PartPrograms,
      request: token_decoder.Request,
  ):
    """Runs each part once, so that it is compiled.

    Args:
      programs: of the pair, and of gamma.
      request: a batch of the shape that is decoded.
    """
    self._decoder = programs.decoder
    request = self._decoder.place(request)
    with self._decoder.scope():
      self._programs = programs.bind(request)
      for program in self._programs.values():
        jax.block_until_ready(program())
    names = (*self._programs, 't_draft')
    self.seconds: dict[str, list[float]] = {
        name: [] for name in names if name != 'drafts'
    }

  def time_round(self) -> None:
    """Times every part once more."""
    with self._decoder.scope():
      spans = {name: seconds(run) for name, run in self._programs.items()}
    drafts = spans.pop('drafts')
    later = max(self._decoder.gamma, 2) - 1
    spans['t_draft'] = max(drafts - spans['t_draft2'], 0.0) / later
    for name, span in spans.items():
      is_loop = not name.startswith('encoder')
      self.seconds[name].append(
          span / part_programs.STEPS if is_loop else span
      )

  def times(self, num_rounds: int | None = None) -> analysis.StepTimes:
    """Median times, of the encoders those of one batch.

    Args:
      num_rounds: of the last so many rounds; None for all.
    """
    last = slice(None if num_rounds is None else -num_rounds, None)
    median = lambda name: float(np.median(self.seconds[name][last]))
    steps = ('t1', 't_verify', 't_draft', 't_draft2')
    return analysis.StepTimes(
        median('encoder_target'),
        median('encoder_draft'),
        *(median(name) * 1e3 for name in steps),
    )

  def call_ms(self) -> float:
    """Median time of drafts and verifying in turns, a step of the loop."""
    return float(np.median(self.seconds['t_call'])) * 1e3


def seconds(program: Callable[[], object]) -> float:
  """Seconds of one call, until its results are there."""
  start = time.perf_counter()
  jax.block_until_ready(program())
  return time.perf_counter() - start


def seconds_in_turns(
    programs: Mapping[Hashable, Callable[[], object]], repeats: int
) -> dict[Hashable, np.ndarray]:
  """Seconds of each program, [repeats], timed in turns after a warm-up."""
  for program in programs.values():
    jax.block_until_ready(program())
  rounds = [
      [seconds(program) for program in programs.values()]
      for _ in range(repeats)
  ]
  return dict(zip(programs, np.transpose(rounds), strict=True))
