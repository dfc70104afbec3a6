# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts what one trip of a compiled loop does, from its instructions.

An inner loop counts once per trip. Of a conditional's branches, one without a
further conditional counts, the shortest if there are several: the sampling code
chooses argmax, a softmax, or filters, which have conditionals of their own.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import math

from speculative_t5x.research.tpu_aot import hlo

_OTHER_COLLECTIVES = ('reduce-scatter', 'all-to-all', 'collective-permute')
_TRANSFERS = ('infeed', 'outfeed', 'send', 'recv')
_CALLBACK = 'callback'  # part of the target's name in a call to the host
_PRODUCTS = ('dot', 'convolution')
_SLICE_UPDATE = 'dynamic-update-slice'
# Opcodes that compute nothing: aliases, and asynchronous copies between HBM and
# on-chip memory, which overlap with computation.
_NO_WORK = (
    'bitcast', 'get-tuple-element', 'parameter', 'tuple', 'constant',
    'copy-start', 'copy-done', 'slice-start', 'slice-done', 'async-done',
)  # fmt: skip
# Custom calls that compute nothing and only manage buffers.
_NO_CALLS = ('ConcatBitcast', 'AllocateBuffer')
_LARGE = 2**16  # elements; copying a smaller array takes negligible time


class Shapes:
  """Recognises caches, large parameters and logits by their shapes.

  The order of axes and axes of size 1 do not count, because the compiler may
  transpose arrays.
  """

  def __init__(
      self,
      caches: Iterable[tuple[int, ...]],
      params: Iterable[tuple[int, ...]],
      vocab_size: int,
  ):
    """Keep the shapes of the self-attention caches and of large parameters.
    """
    self._caches = frozenset(map(_unordered, caches))
    self._params = frozenset(
        _unordered(x) for x in params if math.prod(x) >= _LARGE
    )
    self._vocab_size = vocab_size

  def is_cache(self, array: hlo.Array) -> bool:
    """Return whether an array has the shape of a cache."""
    return _unordered(array.shape) in self._caches

  def is_param(self, array: hlo.Array) -> bool:
    """Return whether an array has the shape of a large parameter."""
    return _unordered(array.shape) in self._params

  def is_logits(self, array: hlo.Array) -> bool:
    """Return whether an array is as wide as the logits, and no parameter."""
    return self._vocab_size in array.shape and not self.is_param(array)


def _unordered(shape: tuple[int, ...]) -> tuple[int, ...]:
  return tuple(sorted(size for size in shape if size > 1))


@dataclasses.dataclass(frozen=True)
class Reading:
  """Counts for one trip of a loop."""

  # The compiler's estimate. It gives none, counted as 0, for asynchronous
  # copies from HBM, in-place slice updates and collectives.
  cycles: int = 0
  num_operations: int = 0  # instructions with an estimate
  all_reduces: int = 0
  all_gathers: int = 0
  other_collectives: int = 0
  host_transfers: int = 0  # to or from the host, in any branch
  cache_bytes_written: int = 0  # new positions, in place
  cache_bytes_remade: int = 0  # rewritten as a whole
  weight_bytes_copied: int = 0  # to another layout or dtype
  vector_products: int = 0  # of weights, by sums on the vector unit
  float32_products: int = 0  # with such an operand, on the matrix unit
  scatter_trips: int = 0  # of loops that write row by row
  vocabulary_passes: int = 0  # instructions on arrays as wide as the logits

  def __add__(self, other: 'Reading') -> 'Reading':
    return Reading(
        *map(sum, zip(dataclasses.astuple(self), dataclasses.astuple(other)))
    )

  def times(self, count: int) -> 'Reading':
    """Return the counts of `count` trips."""
    return Reading(*(count * value for value in dataclasses.astuple(self)))


def read_loop(
    program: hlo.Program,
    shapes: Shapes,
    num_trips: Mapping[str, int] | None = None,
    repeated: str | None = None,
) -> tuple[Reading, Reading | None]:
  """Analyse the decoding loop, whose number of trips depends on data.

  `num_trips` has the trips of other such loops, by a scope of the traced
  function, and `repeated` is the scope of an inner loop.

  Returns:
    One trip with its inner loops; and one trip of that inner loop, else of the
    one with the most cycles per trip, None if there is none.
  """
  reader = _Reader(program, shapes, num_trips or {})
  (loop,) = (
      loop
      for loop in program.loops(program.entry)
      if reader.num_trips(loop) is None
  )
  (body,) = loop.called['body']
  transfers = sum(map(_is_transfer, program.within(body)))
  trip = dataclasses.replace(reader.read(body), host_transfers=transfers)
  inner = [loop for loop in program.loops(body) if not _is_scatter(loop)]
  named = [loop for loop in inner if repeated in _scopes(loop)]
  trips = [reader.read(loop.called['body'][0]) for loop in named or inner]
  return trip, max(trips, key=lambda x: x.cycles, default=None)


def _scopes(loop: hlo.Instruction) -> list[str]:
  return loop.op_name.split('/')


def _is_scatter(loop: hlo.Instruction) -> bool:
  return loop.op_name.endswith('scatter')


def _is_transfer(instruction: hlo.Instruction) -> bool:
  is_call = instruction.opcode == 'custom-call'
  return instruction.opcode in _TRANSFERS or (
      is_call and _CALLBACK in instruction.target
  )


def _count(instructions: list[hlo.Instruction], kind: str) -> int:
  # An asynchronous operation is a start and a done; only the start counts.
  return sum(i.opcode in (kind, f'{kind}-start') for i in instructions)


class _Reader:
  """Analyses computations of one program."""

  def __init__(
      self, program: hlo.Program, shapes: Shapes, num_trips: Mapping[str, int]
  ):
    self._program = program
    self._shapes = shapes
    self._num_trips = num_trips

  def num_trips(self, loop: hlo.Instruction) -> int | None:
    """Return a loop's number of trips; None if it is not known."""
    known = (self._num_trips.get(scope) for scope in _scopes(loop))
    trips = next((count for count in known if count is not None), None)
    return self._program.num_trips(loop) if trips is None else trips

  def read(self, computation: str) -> Reading:
    """Return the counts of a computation."""
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
    is_nested = lambda name: any(
        part.opcode == 'conditional' for part in self._program.of(name)
    )
    last = [name for name in branches if not is_nested(name)] or branches
    return min(map(self.read, last), key=lambda branch: branch.cycles)

  def _read_inner_loop(self, loop: hlo.Instruction) -> Reading:
    trips = self.num_trips(loop)  # must be known
    total = self.read(*loop.called['body']).times(trips)
    return total + Reading(scatter_trips=trips if _is_scatter(loop) else 0)

  def _read_operation(self, operation: hlo.Instruction) -> Reading:
    inner = (
        part
        for role in ('calls', 'to_apply')
        for name in operation.called.get(role, ())
        for part in self._program.within(name)
    )
    parts, shapes = [operation, *inner], self._shapes
    taken = self._program.taken(operation)
    opcodes = {part.opcode for part in parts}
    is_vector_product = (
        any(map(shapes.is_param, taken))
        and 'reduce' in opcodes
        and opcodes.isdisjoint(_PRODUCTS)
    )
    updates = [
        part
        for part in parts
        if part.opcode == _SLICE_UPDATE and shapes.is_cache(part.arrays[0])
    ]
    remade = filter(shapes.is_cache, () if updates else operation.arrays)
    return Reading(
        cycles=operation.cycles,
        num_operations=int(operation.cycles > 0),
        all_reduces=_count(parts, 'all-reduce'),
        all_gathers=_count(parts, 'all-gather'),
        other_collectives=sum(_count(parts, x) for x in _OTHER_COLLECTIVES),
        cache_bytes_written=sum(
            self._program.taken(update)[1].num_bytes for update in updates
        ),
        cache_bytes_remade=sum(x.num_bytes for x in remade),
        weight_bytes_copied=sum(
            x.num_bytes for x in operation.arrays if shapes.is_param(x)
        ),
        vector_products=int(is_vector_product),
        float32_products=sum(map(self._is_float32_product, parts)),
        vocabulary_passes=int(
            any(map(shapes.is_logits, (*operation.arrays, *taken)))
        ),
    )

  def _is_float32_product(self, part: hlo.Instruction) -> bool:
    is_product = part.opcode in _PRODUCTS
    return is_product and any(
        x.dtype == 'f32' for x in self._program.taken(part)
    )
