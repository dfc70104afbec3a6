# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles decoding loops, and counts what one trip of each does.

An inner loop counts once per trip. Of a conditional's branches, one without a
further conditional counts, the shortest if there are several: the sampling code
chooses argmax, a softmax, or filters, which have conditionals of their own.
"""

from collections.abc import Callable, Mapping
import dataclasses
import time
from typing import Any

import jax

from speculative_t5x.drafters import autoregression
from speculative_t5x.networks import input_widths
from speculative_t5x.research.ahead_of_time import hlo
from speculative_t5x.research.ahead_of_time import topology

_TRANSFERS = ('infeed', 'outfeed', 'send', 'recv')
_CALLBACK = 'callback'  # part of the target's name in a call to the host
# Opcodes that compute nothing: aliases, and asynchronous copies between HBM and
# on-chip memory, which overlap with computation.
_NO_WORK = (
    'after-all', 'bitcast', 'get-tuple-element', 'parameter', 'tuple',
    'constant', 'copy-start', 'copy-done', 'slice-start', 'slice-done',
    'async-done',
)  # fmt: skip
# Custom calls that compute nothing and only manage buffers.
_NO_CALLS = ('ConcatBitcast', 'AllocateBuffer')


@dataclasses.dataclass(frozen=True)
class Reading:
  """Counts for one trip of a loop."""

  # The compiler's estimate, 0 for a GPU. It gives none, counted as 0, for
  # asynchronous copies from HBM, in-place slice updates and collectives.
  cycles: int = 0
  num_operations: int = 0  # with an estimate; for a GPU, kernels
  # For which the device waits: infeeds, callbacks, and on a GPU each condition
  # of a conditional and of a loop whose trips depend on data.
  host_transfers: int = 0

  def __add__(self, other: 'Reading') -> 'Reading':
    return Reading(
        *map(sum, zip(dataclasses.astuple(self), dataclasses.astuple(other)))
    )

  def times(self, count: int) -> 'Reading':
    """Return the counts of `count` trips."""
    return Reading(*(count * value for value in dataclasses.astuple(self)))


def read_loop(
    program: hlo.Program,
    num_trips: Mapping[str, int] | None = None,
    repeated: str | None = None,
    on_gpu: bool = False,
) -> tuple[Reading, Reading | None]:
  """Analyse the decoding loop, whose number of trips depends on data.

  Args:
    program: For one device of a TPU or a GPU.
    num_trips: The trips of other such loops, by a scope of the traced function.
    repeated: The scope of an inner loop.
    on_gpu: Whether the host launches each operation, and reads conditions.
  Returns:
    One trip with its inner loops; and one trip of the inner loop `repeated`,
    else of the one with the most operations per trip, None if there is none.
  """
  reader = _Reader(program, num_trips or {}, on_gpu)
  (loop,) = (
      loop
      for loop in program.loops(program.entry)
      if reader.num_trips(loop) is None
  )
  (body,) = loop.called['body']
  inner = program.loops(body)
  for part in program.of(body):
    if part.opcode == 'conditional':
      inner += program.loops(reader.branch(part))
  named = [loop for loop in inner if repeated in _scopes(loop)]
  trips = [reader.read(loop.called['body'][0]) for loop in named or inner]
  longest = max(trips, key=_length, default=None)
  return reader.read(body) + reader.condition, longest


def _length(reading: Reading) -> tuple[int, int]:
  return reading.cycles, reading.num_operations


def _scopes(loop: hlo.Instruction) -> list[str]:
  return loop.op_name.split('/')


def _is_transfer(instruction: hlo.Instruction) -> bool:
  is_call = instruction.opcode == 'custom-call'
  return instruction.opcode in _TRANSFERS or (
      is_call and _CALLBACK in instruction.target
  )


class _Reader:
  """Analyses computations of one program."""

  def __init__(
      self, program: hlo.Program, num_trips: Mapping[str, int], on_gpu: bool
  ):
    self._program = program
    self._num_trips = num_trips
    self._on_gpu = on_gpu
    self.condition = Reading(host_transfers=int(on_gpu))  # to read one

  def num_trips(self, loop: hlo.Instruction) -> int | None:
    """Return a loop's number of trips; None if it is not known."""
    known = (self._num_trips.get(scope) for scope in _scopes(loop))
    trips = next((count for count in known if count is not None), None)
    return self._program.num_trips(loop) if trips is None else trips

  def read(self, computation: str) -> Reading:
    parts = map(self._read, self._program.of(computation))
    return sum(parts, start=Reading())

  def _read(self, instruction: hlo.Instruction) -> Reading:
    if instruction.opcode in _NO_WORK or instruction.target in _NO_CALLS:
      return Reading()
    if instruction.opcode == 'while':
      return self._read_inner_loop(instruction)
    if instruction.opcode == 'conditional':
      return self.condition + self.read(self.branch(instruction))
    if instruction.opcode == 'call':
      return self.read(*instruction.called['to_apply'])
    return Reading(
        cycles=instruction.cycles,
        num_operations=int(self._on_gpu or instruction.cycles > 0),
        host_transfers=int(_is_transfer(instruction)),
    )

  def branch(self, conditional: hlo.Instruction) -> str:
    """Return the shortest branch, which chooses nothing in turn."""
    branches = [
        name
        for role, names in conditional.called.items()
        if role.endswith(('_computation', '_computations'))
        for name in names
    ]
    is_nested = lambda name: any(
        part.opcode == 'conditional' for part in self._program.of(name)
    )
    last = [name for name in branches if not is_nested(name)] or branches
    return min(last, key=lambda name: _length(self.read(name)))

  def _read_inner_loop(self, loop: hlo.Instruction) -> Reading:
    trips = self.num_trips(loop)  # must be known
    is_counted = self._program.num_trips(loop) is not None
    # One more than the trips: the last condition ends the loop.
    conditions = 0 if is_counted else trips + 1
    total = self.read(*loop.called['body']).times(trips)
    return total + self.condition.times(conditions)


@dataclasses.dataclass(frozen=True)
class Program:
  """The analysis of a compiled program that has one decoding loop."""

  compile_s: float  # of tracing and compilation
  step: Reading  # one trip of the loop
  # One trip of its inner loop, which proposes one draft token after the first
  # of a block; None if there is no inner loop.
  draft_step: Reading | None
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
  trip, inner_trip = read_loop(
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
