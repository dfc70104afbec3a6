# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parses the text of XLA's optimised HLO.

The parser covers only what the analysis needs: each instruction's outputs,
operands, called computations and estimated cycles.
"""

import dataclasses
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
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_INDEX = re.compile(r'\bindex=(\d+)')
_DIRECTION = re.compile(r'\bdirection=(\w+)')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')

# Instructions that pass a value on.
_ALIASES = ('bitcast', 'copy', 'copy-done', 'convert')


@dataclasses.dataclass(frozen=True)
class Array:
  """An output array of an instruction."""

  dtype: str  # XLA's name, as 'bf16'
  shape: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Instruction:
  """One HLO instruction."""

  name: str  # unique in the program
  opcode: str  # as 'fusion'
  arrays: tuple[Array, ...]  # its output; several for a tuple
  operands: tuple[str, ...]  # names of instructions
  literal: str  # the value of a constant, or the number of a parameter
  # Names of called computations by role, as 'body'; several for branches.
  called: dict[str, tuple[str, ...]]
  cycles: int  # the compiler's estimate; 0 where it gives none
  op_name: str  # the operation of the traced function that it comes from
  trips: int | None  # of a loop, where the compiler says them
  index: int  # the tuple index of a get-tuple-element, else 0
  target: str  # of a custom call
  direction: str  # of a compare, as 'LT'
  is_root: bool  # whether it is the output of its computation


@dataclasses.dataclass(frozen=True)
class Program:
  """A compiled program."""

  # Names of each computation's instructions, in execution order.
  computations: dict[str, list[str]]
  instructions: dict[str, Instruction]  # of all computations, by name
  entry: str  # name of a computation

  def of(self, computation: str) -> list[Instruction]:
    """Return the instructions of a computation, in execution order."""
    return [self.instructions[name] for name in self.computations[computation]]

  def loops(self, computation: str) -> list[Instruction]:
    """Return the outermost loops of a computation, and of what it calls."""
    # XLA of JAX 0.12 puts loops into computations of their own.
    loops = []
    for instruction in self.of(computation):
      if instruction.opcode == 'while':
        loops.append(instruction)
      elif instruction.opcode == 'call':
        loops += self.loops(*instruction.called['to_apply'])
    return loops

  def num_trips(self, loop: Instruction) -> int | None:
    """Return a loop's number of trips; None if it depends on data.

    Where the compiler does not say them, as for a TPU, recognises loops that
    count up by one to a constant bound. `lax.scan` makes such loops, and so
    does XLA for a scatter that writes row by row.
    """
    if loop.trips is not None:
      return loop.trips
    (condition,) = loop.called['condition']
    compare = self._source(next(i for i in self.of(condition) if i.is_root))
    if compare.opcode != 'compare' or compare.direction != 'LT':
      return None
    bounds = [self._initial_value(loop, name) for name in compare.operands]
    return None if None in bounds else bounds[1] - bounds[0]

  def _initial_value(self, loop: Instruction, name: str) -> int | None:
    """Return the constant that a condition's value has at first, if any."""
    source = self._source(self.instructions[name])
    if source.opcode == 'get-tuple-element':
      carried = self._source(self.instructions[loop.operands[0]])
      if carried.opcode != 'tuple':
        return None
      operand = carried.operands[source.index]
      source = self._source(self.instructions[operand])
    return int(source.literal) if source.opcode == 'constant' else None

  def _source(self, instruction: Instruction) -> Instruction:
    """Return the instruction that computed a value, behind copies."""
    while instruction.opcode in _ALIASES:
      instruction = self.instructions[instruction.operands[0]]
    return instruction


def parse(text: str) -> Program:
  """Parse the text that `jax.stages.Compiled.as_text` returns."""
  computations: dict[str, list[str]] = {}
  instructions: dict[str, Instruction] = {}
  entry = computation = ''
  for line in text.splitlines():
    if head := _HEAD.match(line):
      computation = head[2]
      computations[computation] = []
      entry = computation if head[1] else entry
    elif computation and (match := _INSTRUCTION.match(line)):
      name = match[2]
      instructions[name] = _parse_instruction(bool(match[1]), name, match[3])
      computations[computation].append(name)
  return Program(computations, instructions, entry)


def _parse_instruction(is_root: bool, name: str, text: str) -> Instruction:
  # The output's type, the opcode with its operands, and the attributes.
  made, rest = _split_balanced(text) if text[0] == '(' else text.split(' ', 1)
  opcode, _, rest = rest.partition('(')
  operands, attributes = _split_balanced('(' + rest)

  def find(pattern: re.Pattern[str]) -> str:
    match = pattern.search(attributes)
    return match[1] if match else ''

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
      cycles=int(find(_CYCLES) or 0),
      op_name=find(_OP_NAME),
      trips=int(trips) if (trips := find(_TRIPS)) else None,
      index=int(find(_INDEX) or 0),
      target=find(_TARGET),
      direction=find(_DIRECTION),
      is_root=is_root,
  )


def _split_balanced(text: str) -> tuple[str, str]:
  """Split a text after the parenthesis that closes the first one."""
  depth = 0
  for end, char in enumerate(text, start=1):
    depth += (char == '(') - (char == ')')
    if depth == 0:
      return text[:end], text[end:].lstrip()
  return text, ''
