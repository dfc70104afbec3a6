# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The text of a compiled program, taken apart.

Of XLA's optimised HLO only what is asked of it here: what each instruction
makes, from what, what it calls, and how many cycles the compiler reckons.
"""

from collections.abc import Iterator
import dataclasses
import math
import re

_HEAD = re.compile(r'^(ENTRY )?%?([\w.\-]+) \(.*\{$')
_INSTRUCTION = re.compile(r'^  (ROOT )?%?([\w.\-]+) = (.*)$')
_ARRAY = re.compile(r'([a-z]\w*)\[([\d,]*)\]')
_NAME = re.compile(r'%([\w.\-]+)')
_CALLED = re.compile(
    r'\b(calls|to_apply|body|condition|branch_computations'
    r'|true_computation|false_computation)='
    r'(\{[^}]*\}|%?[\w.\-]+)'
)
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_INDEX = re.compile(r'\bindex=(\d+)')
_DIRECTION = re.compile(r'\bdirection=(\w+)')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_BITS = re.compile(r'\d+')

# What hands an array on as it is.
_ALIASES = ('bitcast', 'copy', 'copy-done', 'convert')


@dataclasses.dataclass(frozen=True)
class Array:
  """An array that an instruction makes.

  Attributes:
    dtype: by XLA's name, e.g. 'bf16'.
    shape: its sizes.
  """

  dtype: str
  shape: tuple[int, ...]

  @property
  def num_bytes(self) -> int:
    """Bytes of its numbers, the padding of tiles left out."""
    bits = 8 if self.dtype == 'pred' else int(_BITS.search(self.dtype)[0])
    return math.prod(self.shape) * bits // 8


@dataclasses.dataclass(frozen=True)
class Instruction:
  """One instruction.

  Attributes:
    name: unique in the program.
    opcode: e.g. 'fusion'.
    arrays: what it makes, one or, for a tuple, several.
    operands: names of what it takes.
    literal: what a constant is, or a parameter's number.
    called: names of computations by role, e.g. 'body'; several for branches.
    cycles: as the compiler reckons them; 0 where it does not.
    op_name: where it comes from in the traced function.
    index: of the element that get-tuple-element takes.
    target: what a custom call calls.
    direction: in which a compare compares, e.g. 'LT'.
    is_root: whether the computation gives what this makes.
  """

  name: str
  opcode: str
  arrays: tuple[Array, ...]
  operands: tuple[str, ...]
  literal: str
  called: dict[str, tuple[str, ...]]
  cycles: int
  op_name: str
  index: int | None
  target: str
  direction: str
  is_root: bool


@dataclasses.dataclass(frozen=True)
class Program:
  """A compiled program.

  Attributes:
    computations: names of instructions, in the order in which they run.
    instructions: by name, of all computations.
    entry: name of the computation that is run.
  """

  computations: dict[str, list[str]]
  instructions: dict[str, Instruction]
  entry: str

  def of(self, computation: str) -> list[Instruction]:
    """The instructions of a computation, in their order."""
    return [self.instructions[name] for name in self.computations[computation]]

  def loops(self, computation: str) -> list[Instruction]:
    """The loops of a computation, not those within them."""
    return [i for i in self.of(computation) if i.opcode == 'while']

  def taken(self, instruction: Instruction) -> list[Array]:
    """The arrays that an instruction takes."""
    return [
        array
        for name in instruction.operands
        for array in self.instructions[name].arrays
    ]

  def num_trips(self, loop: Instruction) -> int | None:
    """How often a loop of a computation runs; None if its data decide.

    Known are loops that count up by one to a bound, as `lax.scan` makes them
    and XLA itself where it writes row after row.
    """
    (condition,) = loop.called['condition']
    compare = self._source(self._root(condition))
    if compare.opcode != 'compare' or compare.direction != 'LT':
      return None
    bounds = [self._initial_value(loop, name) for name in compare.operands]
    return None if None in bounds else bounds[1] - bounds[0]

  def _initial_value(self, loop: Instruction, name: str) -> int | None:
    """A constant that a loop's condition reads before the first trip."""
    source = self._source(self.instructions[name])
    if source.opcode == 'get-tuple-element':
      carried = self._source(self.instructions[loop.operands[0]])
      if carried.opcode != 'tuple':
        return None
      operand = carried.operands[source.index]
      source = self._source(self.instructions[operand])
    return int(source.literal) if source.opcode == 'constant' else None

  def _root(self, computation: str) -> Instruction:
    return next(i for i in self.of(computation) if i.is_root)

  def _source(self, instruction: Instruction) -> Instruction:
    """What made a value, before it was handed on."""
    while instruction.opcode in _ALIASES:
      instruction = self.instructions[instruction.operands[0]]
    return instruction

  def within(self, computation: str) -> Iterator[Instruction]:
    """Instructions of a computation and of all that it calls, each once."""
    seen, todo = set(), [computation]
    while todo:
      name = todo.pop()
      if name in seen:
        continue
      seen.add(name)
      for instruction in self.of(name):
        yield instruction
        for names in instruction.called.values():
          todo.extend(names)


def parse(text: str) -> Program:
  """Takes apart what `jax.stages.Compiled.as_text` gives.

  Raises:
    ValueError: if there is no entry computation in it.
  """
  computations: dict[str, list[str]] = {}
  instructions: dict[str, Instruction] = {}
  entry = computation = None
  for line in text.splitlines():
    if head := _HEAD.match(line):
      computation = head[2]
      computations[computation] = []
      entry = computation if head[1] else entry
    elif computation is not None and (match := _INSTRUCTION.match(line)):
      name = match[2]
      instructions[name] = _parse_instruction(bool(match[1]), name, match[3])
      computations[computation].append(name)
  if entry is None:
    raise ValueError('The text holds no entry computation; it is no HLO.')
  return Program(computations, instructions, entry)


def _parse_instruction(is_root: bool, name: str, text: str) -> Instruction:
  made, rest = _split_type(text)
  opcode, _, rest = rest.partition('(')
  operands, attributes = _split_balanced('(' + rest)
  cycles = _CYCLES.search(attributes)
  op_name = _OP_NAME.search(attributes)
  index = _INDEX.search(attributes)
  target = _TARGET.search(attributes)
  direction = _DIRECTION.search(attributes)
  return Instruction(
      name=name,
      opcode=opcode.strip(),
      arrays=tuple(
          Array(dtype, tuple(map(int, filter(None, sizes.split(',')))))
          for dtype, sizes in _ARRAY.findall(made)
      ),
      operands=tuple(_NAME.findall(operands)),
      literal=operands[1:-1],
      called={
          role: tuple(re.findall(r'[\w.\-]+', names))
          for role, names in _CALLED.findall(attributes)
      },
      cycles=int(cycles[1]) if cycles else 0,
      op_name=op_name[1] if op_name else '',
      index=int(index[1]) if index else None,
      target=target[1] if target else '',
      direction=direction[1] if direction else '',
      is_root=is_root,
  )


def _split_type(text: str) -> tuple[str, str]:
  """The type of what is made, and the rest of the line."""
  if text.startswith('('):
    return _split_balanced(text)
  made, _, rest = text.partition(' ')
  return made, rest


def _split_balanced(text: str) -> tuple[str, str]:
  """What the first parenthesis closes, and the rest."""
  depth = 0
  for i, char in enumerate(text):
    depth += (char == '(') - (char == ')')
    if depth == 0:
      return text[: i + 1], text[i + 1 :].lstrip()
  raise ValueError(f'Parentheses are not closed in {text[:80]!r}.')
