# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What one trip of a compiled loop does, read off its instructions.

An inner loop counts as often as it runs. Of a conditional's branches the one
that asks nothing further counts: that of argmax, where the other goes on to ask
for top-k and top-p.
"""

from collections.abc import Iterable
import dataclasses
from typing import NamedTuple

from speculative_t5x.tpu_aot import hlo

_OTHER_COLLECTIVES = ('reduce-scatter', 'all-to-all', 'collective-permute')
_TRANSFERS = ('infeed', 'outfeed', 'send', 'recv')
_CALLBACK = 'callback'  # in the name of what calls the host
_PRODUCTS = ('dot', 'convolution')
_SLICE_UPDATE = 'dynamic-update-slice'
# What computes nothing: names for arrays, and moves between HBM and the memory
# on the chip, which run beside the rest.
_NO_WORK = (
    'bitcast', 'get-tuple-element', 'parameter', 'tuple', 'constant',
    'copy-start', 'copy-done', 'slice-start', 'slice-done', 'async-done',
)  # fmt: skip
# Custom calls that only say where arrays lie.
_NO_CALLS = ('ConcatBitcast', 'AllocateBuffer')
_LARGE = 2**16  # numbers; no step waits for the layout of less


@dataclasses.dataclass(frozen=True)
class Shapes:
  """Sizes that arrays are known by, whatever the order of their axes.

  Attributes:
    caches: of the decoders' own keys and values, see `unordered`.
    params: of their large parameters, likewise.
    vocab_size: of the logits.
  """

  caches: frozenset[tuple[int, ...]]
  params: frozenset[tuple[int, ...]]
  vocab_size: int


def make_shapes(
    caches: Iterable[tuple[int, ...]],
    params: Iterable[tuple[int, ...]],
    vocab_size: int,
) -> Shapes:
  """Shapes from those of the arrays, small parameters left out."""
  large = [s for s in params if hlo.Array('s8', s).num_bytes >= _LARGE]
  return Shapes(
      frozenset(map(_unordered, caches)),
      frozenset(map(_unordered, large)),
      vocab_size,
  )


def _unordered(shape: tuple[int, ...]) -> tuple[int, ...]:
  return tuple(sorted(size for size in shape if size > 1))


@dataclasses.dataclass(frozen=True)
class Reading:
  """What one trip does.

  Attributes:
    cycles: as the compiler reckons them. What it has no reckoning for counts
      nothing: moves from HBM beside the rest, slices written in place, and
      collectives.
    num_operations: instructions that it reckons.
    all_reduces: sums over devices.
    all_gathers: of parts that lie on several devices.
    other_collectives: of any other kind.
    host_transfers: to the host or from it, of untaken branches too.
    cache_bytes_written: of new positions, into caches that stay in place.
    cache_bytes_remade: of caches that are made anew as a whole.
    weight_bytes_copied: of parameters, to lie in another layout or dtype.
    vector_products: of weights with a vector, by sums on the vector unit.
    float32_products: on the matrix unit, with a float32 operand.
    scatter_trips: trips of loops that write one row after another.
    vocabulary_passes: instructions on arrays as wide as the logits.
  """

  cycles: int = 0
  num_operations: int = 0
  all_reduces: int = 0
  all_gathers: int = 0
  other_collectives: int = 0
  host_transfers: int = 0
  cache_bytes_written: int = 0
  cache_bytes_remade: int = 0
  weight_bytes_copied: int = 0
  vector_products: int = 0
  float32_products: int = 0
  scatter_trips: int = 0
  vocabulary_passes: int = 0

  def __add__(self, other: 'Reading') -> 'Reading':
    return Reading(
        *map(sum, zip(dataclasses.astuple(self), dataclasses.astuple(other)))
    )

  def times(self, count: int) -> 'Reading':
    """Of so many trips."""
    return Reading(*(count * value for value in dataclasses.astuple(self)))


class Loop(NamedTuple):
  """What a program's loop does.

  Attributes:
    trip: one trip, inner loops included.
    inner_trip: one trip of the inner loop that takes longest, of those that
      were loops before they were compiled; None if there is none.
  """

  trip: Reading
  inner_trip: Reading | None


def read_loop(program: hlo.Program, shapes: Shapes) -> Loop:
  """Reads the program's loop whose number of trips data decide.

  Raises:
    ValueError: if the program has not exactly one such loop.
  """
  loops = [
      loop
      for loop in program.loops(program.entry)
      if program.num_trips(loop) is None
  ]
  if len(loops) != 1:
    raise ValueError(
        f'A program of one decoding loop was expected, got {len(loops)}.'
    )
  (body,) = loops[0].called['body']
  reader = _Reader(program, shapes)
  transfers = sum(map(_is_transfer, program.within(body)))
  trip = dataclasses.replace(reader.read(body), host_transfers=transfers)
  inner = [
      reader.read(loop.called['body'][0])
      for loop in program.loops(body)
      if not _is_scatter(loop)
  ]
  return Loop(trip, max(inner, key=lambda x: x.cycles, default=None))


def _is_scatter(loop: hlo.Instruction) -> bool:
  return loop.op_name.endswith('scatter')


def _is_transfer(instruction: hlo.Instruction) -> bool:
  is_call = instruction.opcode == 'custom-call'
  return instruction.opcode in _TRANSFERS or (
      is_call and _CALLBACK in instruction.target
  )


def _count(instructions: list[hlo.Instruction], kind: str) -> int:
  # What is started and done apart is started once.
  return sum(i.opcode in (kind, f'{kind}-start') for i in instructions)


class _Reader:
  """Reads computations of one program."""

  def __init__(self, program: hlo.Program, shapes: Shapes):
    self._program = program
    self._shapes = shapes

  def read(self, computation: str) -> Reading:
    """All of a computation."""
    parts = map(self._read, self._program.of(computation))
    return sum(parts, start=Reading())

  def _read(self, instruction: hlo.Instruction) -> Reading:
    if instruction.opcode in _NO_WORK or instruction.target in _NO_CALLS:
      return Reading()
    if instruction.opcode == 'while':
      return self._read_inner_loop(instruction)
    if instruction.opcode == 'conditional':
      return self._read_branch(instruction)
    if instruction.opcode == 'call':
      return self.read(*instruction.called['to_apply'])
    return self._read_operation(instruction)

  def _read_branch(self, conditional: hlo.Instruction) -> Reading:
    branches = [
        name
        for role, names in conditional.called.items()
        if role.endswith(('_computation', '_computations'))
        for name in names
    ]
    asks = lambda name: any(
        part.opcode == 'conditional' for part in self._program.of(name)
    )
    last = [name for name in branches if not asks(name)] or branches
    return min(map(self.read, last), key=lambda branch: branch.cycles)

  def _read_inner_loop(self, loop: hlo.Instruction) -> Reading:
    trips = self._program.num_trips(loop)
    if trips is None:
      raise ValueError(
          f'How often the loop {loop.name} runs within the decoding loop'
          ' cannot be told.'
      )
    (body,) = loop.called['body']
    total = self.read(body).times(trips)
    return total + Reading(scatter_trips=trips if _is_scatter(loop) else 0)

  def _read_operation(self, operation: hlo.Instruction) -> Reading:
    parts = self._parts(operation)
    taken = self._program.taken(operation)
    return Reading(
        cycles=operation.cycles,
        num_operations=int(operation.cycles > 0),
        all_reduces=_count(parts, 'all-reduce'),
        all_gathers=_count(parts, 'all-gather'),
        other_collectives=sum(_count(parts, x) for x in _OTHER_COLLECTIVES),
        cache_bytes_written=self._bytes_written(parts),
        cache_bytes_remade=self._bytes_remade(operation, parts),
        weight_bytes_copied=sum(
            x.num_bytes for x in operation.arrays if self._is_param(x)
        ),
        vector_products=int(
            any(map(self._is_param, taken)) and _is_vector_product(parts)
        ),
        float32_products=sum(map(self._is_float32_product, parts)),
        vocabulary_passes=int(
            any(map(self._is_logits, (*operation.arrays, *taken)))
        ),
    )

  def _parts(self, operation: hlo.Instruction) -> list[hlo.Instruction]:
    """The instruction, and what it is fused of or calls."""
    inner = (
        part
        for role in ('calls', 'to_apply')
        for name in operation.called.get(role, ())
        for part in self._program.within(name)
    )
    return [operation, *inner]

  def _updates(self, parts) -> list[hlo.Instruction]:
    updates = [part for part in parts if part.opcode == _SLICE_UPDATE]
    return [update for update in updates if self._is_cache(update.arrays[0])]

  def _bytes_written(self, parts) -> int:
    return sum(
        self._program.taken(update)[1].num_bytes
        for update in self._updates(parts)
    )

  def _bytes_remade(self, operation, parts) -> int:
    if self._updates(parts):
      return 0
    return sum(x.num_bytes for x in operation.arrays if self._is_cache(x))

  def _is_float32_product(self, part: hlo.Instruction) -> bool:
    is_product = part.opcode in _PRODUCTS
    return is_product and any(
        x.dtype == 'f32' for x in self._program.taken(part)
    )

  def _is_cache(self, array: hlo.Array) -> bool:
    return _unordered(array.shape) in self._shapes.caches

  def _is_param(self, array: hlo.Array) -> bool:
    return _unordered(array.shape) in self._shapes.params

  def _is_logits(self, array: hlo.Array) -> bool:
    is_wide = self._shapes.vocab_size in array.shape
    return is_wide and not self._is_param(array)


def _is_vector_product(parts: list[hlo.Instruction]) -> bool:
  opcodes = {part.opcode for part in parts}
  return 'reduce' in opcodes and opcodes.isdisjoint(_PRODUCTS)
