# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles decoding programs for a topology and analyses each."""

from collections.abc import Callable
import dataclasses
import time
from typing import Any

import jax

from speculative_t5x.drafters import autoregression
from speculative_t5x.networks import input_widths
from speculative_t5x.research.ahead_of_time import hlo
from speculative_t5x.research.ahead_of_time import program_reading
from speculative_t5x.research.ahead_of_time import topology


@dataclasses.dataclass(frozen=True)
class Program:
  """The analysis of a compiled program that has one decoding loop."""

  compile_s: float  # of tracing and compilation
  step: program_reading.Reading  # one trip of the loop
  # One trip of its inner loop, which proposes one draft token after the first
  # of a block; None if there is no inner loop.
  draft_step: program_reading.Reading | None
  # Bytes of device memory while the program runs: `arguments` (mainly the
  # parameters), `temporaries` (caches, keys and values of the inputs,
  # activations), `outputs`, and `code`, the program itself.
  memory: dict[str, int]


def compile_loop(
    place: topology.Topology,
    make: Callable[..., jax.stages.Compiled],
    *arguments: Any,
    gamma: int = 0,
) -> Program:
  """Compile a program that has one decoding loop and analyse it.

  `make` compiles it of the arguments, for a place. Of a drafter that is a
  network gamma tokens are drawn, one by one.
  """
  start = time.perf_counter()
  compiled = make(*arguments)
  seconds = time.perf_counter() - start
  stats = compiled.memory_analysis()
  trips = {
      autoregression.CATCH_UP: 0,
      autoregression.FIRST: 1,
      autoregression.LATER: gamma - 1,
      input_widths.SCOPE: 1,  # at most, each: it encodes before decoding
  }
  trip, inner_trip = program_reading.read_loop(
      hlo.parse(compiled.as_text()),
      trips,
      autoregression.LATER,
      on_gpu=place.platform == 'gpu',
  )
  return Program(
      compile_s=seconds,
      step=trip,
      draft_step=inner_trip,
      memory={
          'arguments': stats.argument_size_in_bytes,
          'temporaries': stats.temp_size_in_bytes,
          'outputs': stats.output_size_in_bytes,
          'code': stats.generated_code_size_in_bytes,
      },
  )
