# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of parsing the text of a compiled program."""

import pytest

from speculative_t5x.research.tpu_aot import hlo

# A loop whose bound is carried.
_TEXT = """HloModule jit_decode, is_scheduled=true, entry_computation_layout={()}

%wide.condition.clone (wide.arg: (s32[], s32[])) -> pred[] {
  %wide.arg = (s32[]{:T(128)}, s32[]{:T(128)}) parameter(0)
  %gte.1 = s32[]{:T(128)} get-tuple-element(%wide.arg), index=0
  %gte.2 = s32[]{:T(128)} get-tuple-element(%wide.arg), index=1
  %copy.2 = s32[]{:T(128)} copy(%gte.2)
  ROOT %lt.1 = pred[]{:T(512)} compare(%gte.1, %copy.2), direction=LT
}

%scanned (scan.arg: (s32[], s32[])) -> (s32[], s32[]) {
  ROOT %scan.arg = (s32[]{:T(128)}, s32[]{:T(128)}) parameter(0)
}

ENTRY %main.213 (vector.1: bf16[1,256]) -> (s32[], s32[]) {
  %vector.1 = bf16[1,256]{1,0:T(2,128)(2,1)} parameter(0), metadata={op_name="args[0]" stack_frame_id=1}
  %three = s32[]{:T(128)} constant(3)
  %ten = s32[]{:T(128)} constant(10)
  %start = s32[]{:T(128)} copy(%three)
  %bound-done = s32[]{:T(128)} bitcast(%ten)
  %tuple.1 = (s32[]{:T(128)}, s32[]{:T(128)}) tuple(%start, %bound-done)
  ROOT %while.1 = (s32[]{:T(128)}, s32[]{:T(128)}) while(%tuple.1), condition=%wide.condition.clone, body=%scanned
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ('dtype', 'shape', 'num_bytes'),
    [('bf16', (4, 64, 36), 2 * 4 * 64 * 36), ('f32', (), 4), ('s4', (6,), 3),
     ('f8e4m3fn', (5,), 5), ('pred', (2, 7), 14)],
)  # fmt: skip
def test_num_bytes(dtype, shape, num_bytes):
  assert hlo.Array(dtype, shape).num_bytes == num_bytes


@pytest.mark.parametrize(
    ('before', 'after', 'num_trips'),
    [
        ('', '', 10 - 3),
        ('get-tuple-element(%wide.arg), index=1', 'constant(5)', 5 - 3),
        ('%three = s32[]{:T(128)} constant(3)',
         '%three = s32[]{:T(128)} parameter(2)', None),
        ('while(%tuple.1)', 'while(%while.1)', None),
        ('direction=LT', 'direction=LE', None),
    ],
    ids=['carried bound', 'bound in the condition', 'start that is given',
         'carry that is given', 'a last trip'],
)  # fmt: skip
def test_trips(before, after, num_trips):
  assert before in _TEXT
  program = hlo.parse(_TEXT.replace(before, after, 1))
  assert program.num_trips(program.instructions['while.1']) == num_trips
