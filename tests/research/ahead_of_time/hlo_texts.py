# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small programs in the form in which XLA prints programs for a TPU."""

COUNT = 's32[]{:T(128)}'
VECTOR = 'bf16[1,256]{1,0:T(2,128)(2,1)S(3)}'
_CARRY = f'({COUNT}, {VECTOR})'

_PROGRAM = """HloModule jit_loop, is_scheduled=true

%is_unfinished (carry.0: (s32[])) -> pred[] {{
  %carry.0 = {carry} parameter(0)
  %count.0 = s32[]{{:T(128)}} get-tuple-element(%carry.0), index=0
  %limit = s32[]{{:T(128)}} get-tuple-element(%carry.0), index=0
  ROOT %lt.0 = pred[]{{:T(512)}} compare(%count.0, %limit), direction=LT
}}

{others}

%advance (carry.1: (s32[])) -> (s32[]) {{
  %carry.1 = {carry} parameter(0)
  %count = {count} get-tuple-element(%carry.1), index=0
  %vector = {vector} get-tuple-element(%carry.1), index=1
{body}
  ROOT %next = {carry} tuple(%count, %vector)
}}

ENTRY %main.9 (carry.2: (s32[])) -> (s32[]) {{
  %carry.2 = {carry} parameter(0)
  ROOT %loop = {carry} while(%carry.2), condition=%is_unfinished, body=%advance
}}
"""


def program(*body: str, others: str = '') -> str:
  """Return a program with one loop whose end depends on data.

  Instructions of its body may take %count and %vector, and call the other
  computations.
  """
  return _PROGRAM.format(
      carry=_CARRY,
      count=COUNT,
      vector=VECTOR,
      others=others,
      body=_indented(body),
  )


def computation(name: str, *lines: str) -> str:
  """Return a computation; the last line is its root."""
  *first, last = lines
  body = _indented((*first, f'ROOT {last}'))
  return f'%{name} (unused.{name}: s32[]) -> s32[] {{\n{body}\n}}\n'


def counted(name: str, bound: int, *lines: str) -> str:
  """Return the computations of a loop that `looped` runs a number of times."""
  condition = computation(
      f'{name}.condition',
      f'%{name}.carry = ({COUNT}) parameter(0)',
      f'%{name}.i = {COUNT} get-tuple-element(%{name}.carry), index=0',
      f'%{name}.bound = {COUNT} constant({bound})',
      f'%{name}.lt = pred[]{{:T(512)}} compare(%{name}.i, %{name}.bound),'
      ' direction=LT',
  )
  return condition + computation(f'{name}.body', *lines)


def looped(name: str, op_name: str = 'jit(loop)/while/body/while') -> str:
  """Return the lines that run a loop of `counted` from 0 on."""
  return '\n  '.join(
      [
          f'%{name}.zero = {COUNT} constant(0)',
          f'%{name}.start = ({COUNT}) tuple(%{name}.zero)',
          f'%{name} = ({COUNT}) while(%{name}.start),'
          f' condition=%{name}.condition, body=%{name}.body,'
          f' metadata={{op_name="{op_name}" stack_frame_id=7}}',
      ]
  )


def estimated(cycles: int) -> str:
  """Return the end of an instruction with an estimate of cycles."""
  return (
      ', backend_config={"flag_configs":[],"window_config":{'
      f'"kernel_window_bounds":["1"],"estimated_cycles":"{cycles}",'
      '"iteration_bounds":["1"]},"used_scoped_memory_configs":[]}'
  )


def _indented(lines) -> str:
  return '\n'.join(f'  {line}' for line in lines)
