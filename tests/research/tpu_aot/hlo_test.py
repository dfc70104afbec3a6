# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of parsing the text of a compiled program."""

import pytest

from speculative_t5x.research.tpu_aot import hlo

# A scan whose bound is carried, a loop that its data end, a fusion, a
# conditional and a call out.
_TEXT = """HloModule jit_decode, is_scheduled=true, entry_computation_layout={()}

%wide.condition.clone (wide.arg: (s32[], s32[], bf16[4,64,36])) -> pred[] {
  %wide.arg = (s32[]{:T(128)}, s32[]{:T(128)}, bf16[4,64,36]{1,2,0:T(8,128)(2,1)S(3)}) parameter(0)
  %gte.1 = s32[]{:T(128)} get-tuple-element(%wide.arg), index=0
  %gte.2 = s32[]{:T(128)} get-tuple-element(%wide.arg), index=1
  %copy.2 = s32[]{:T(128)} copy(%gte.2)
  ROOT %lt.1 = pred[]{:T(512)} compare(%gte.1, %copy.2), direction=LT
}

%scanned (scan.arg: (s32[], s32[], bf16[4,64,36])) -> (s32[], s32[], bf16[4,64,36]) {
  %scan.arg = (s32[]{:T(128)}, s32[]{:T(128)}, bf16[4,64,36]{1,2,0:T(8,128)(2,1)S(3)}) parameter(0)
  ROOT %multiply.1 = (s32[]{:T(128)}, s32[]{:T(128)}, bf16[4,64,36]{1,2,0:T(8,128)(2,1)S(3)}) custom-call(%scan.arg), custom_call_target="Sharding"
}

%fused_computation.7.clone (param_0.1: bf16[1,256], param_1.1: bf16[256,512]) -> (f32[1,512], pred[1]) {
  %param_0.1 = bf16[1,256]{1,0:T(2,128)(2,1)} parameter(0)
  %param_1.1 = bf16[256,512]{1,0:T(8,128)(2,1)} parameter(1)
  %convolution.3 = f32[1,512]{1,0:T(1,128)} convolution(%param_0.1, %param_1.1), dim_labels=bf_io->bf, backend_config={"window_config":{"estimated_cycles":"77"}}
  %is_large.3 = pred[1]{0:T(512)} constant({true})
  ROOT %tuple.3 = (f32[1,512]{1,0:T(1,128)}, pred[1]{0:T(512)}) tuple(%convolution.3, %is_large.3)
}

%branch_0 (branch_0.arg: f32[]) -> f32[] {
  ROOT %branch_0.arg = f32[]{:T(128)} parameter(0)
}

%branch_1 (branch_1.arg: f32[]) -> f32[] {
  %branch_1.arg = f32[]{:T(128)} parameter(0)
  ROOT %fusion.9 = f32[]{:T(128)} fusion(%branch_1.arg), kind=kLoop, calls=%shared
}

%shared (shared.arg: f32[]) -> f32[] {
  ROOT %shared.arg = f32[]{:T(128)} parameter(0)
}

%is_unfinished (data.arg: (pred[])) -> pred[] {
  %data.arg = (pred[]{:T(512)}) parameter(0)
  %gte.3 = pred[]{:T(512)} get-tuple-element(%data.arg), index=0
  ROOT %not.1 = pred[]{:T(512)} not(%gte.3)
}

%advance (advance.arg: (pred[])) -> (pred[]) {
  ROOT %advance.arg = (pred[]{:T(512)}) parameter(0)
}

ENTRY %main.213 (vector.1: bf16[1,256], weights.1: bf16[256,512]) -> f32[1,512] {
  %vector.1 = bf16[1,256]{1,0:T(2,128)(2,1)} parameter(0), metadata={op_name="args[0]" stack_frame_id=1}
  %weights.1 = bf16[256,512]{1,0:T(8,128)(2,1)} parameter(1)
  %fusion.1 = (f32[1,512]{1,0:T(1,128)S(3)}, /*index=1*/pred[1]{0:T(512)(128)(4,1)}) fusion(%vector.1, %weights.1), kind=kOutput, calls=%fused_computation.7.clone, metadata={op_name="jit(decode)/while/body/decode_block/dot_general" stack_frame_id=5}, backend_config={"flag_configs":[],"window_config":{"estimated_cycles":"1234","iteration_bounds":["1","1"]}}
  %three = s32[]{:T(128)} constant(3)
  %ten = s32[]{:T(128)} constant(10)
  %start = s32[]{:T(128)} copy(%three)
  %bound-done = s32[]{:T(128)} bitcast(%ten)
  %empty = bf16[4,64,36]{1,2,0:T(8,128)(2,1)S(3)} custom-call(), custom_call_target="AllocateBuffer"
  %tuple.1 = (s32[]{:T(128)}, s32[]{:T(128)}, bf16[4,64,36]{1,2,0:T(8,128)(2,1)S(3)}) tuple(%start, %bound-done, %empty)
  %while.1 = (s32[]{:T(128)}, s32[]{:T(128)}, bf16[4,64,36]{1,2,0:T(8,128)(2,1)S(3)}) while(%tuple.1), condition=%wide.condition.clone, body=%scanned
  %is_done = pred[]{:T(512)} constant(false)
  %tuple.2 = (pred[]{:T(512)}) tuple(%is_done)
  %while.2 = (pred[]{:T(512)}) while(%tuple.2), condition=%is_unfinished, body=%advance
  %one = f32[]{:T(128)} constant(1)
  %conditional.1 = f32[]{:T(128)} conditional(%three, %one, %one), branch_computations={%branch_0, %branch_1}, metadata={op_name="jit(decode)/cond"}
  %call.2 = f32[]{:T(128)} call(%one), to_apply=%shared
  ROOT %gte.9 = f32[1,512]{1,0:T(1,128)S(3)} get-tuple-element(%fusion.1), index=0
}
"""  # noqa: E501


@pytest.fixture
def program():
  return hlo.parse(_TEXT)


class TestParse:

  def test_computations(self, program):
    assert program.entry == 'main.213'
    assert list(program.computations) == [
        'wide.condition.clone', 'scanned', 'fused_computation.7.clone',
        'branch_0', 'branch_1', 'shared', 'is_unfinished', 'advance',
        'main.213',
    ]  # fmt: skip
    assert program.computations['is_unfinished'] == [
        'data.arg', 'gte.3', 'not.1'
    ]  # fmt: skip
    names = [each.name for each in program.of('branch_1')]
    assert names == ['branch_1.arg', 'fusion.9']

  def test_an_instruction(self, program):
    found = program.instructions['fusion.1']
    assert found == hlo.Instruction(
        name='fusion.1',
        opcode='fusion',
        arrays=(hlo.Array('f32', (1, 512)), hlo.Array('pred', (1,))),
        operands=('vector.1', 'weights.1'),
        literal='%vector.1, %weights.1',
        called={'calls': ('fused_computation.7.clone',)},
        cycles=1234,
        op_name='jit(decode)/while/body/decode_block/dot_general',
        index=0,
        target='',
        direction='',
        is_root=False,
    )


class TestArray:

  @pytest.mark.parametrize(
      ('dtype', 'shape', 'num_bytes'),
      [
          ('bf16', (4, 64, 36), 2 * 4 * 64 * 36),
          ('f32', (), 4),
          ('s8', (3,), 3),
          ('s4', (6,), 3),
          ('f8e4m3fn', (5,), 5),
          ('pred', (2, 7), 14),
      ],
  )
  def test_num_bytes(self, dtype, shape, num_bytes):
    assert hlo.Array(dtype, shape).num_bytes == num_bytes


class TestProgram:

  def test_trips_from_a_start_to_a_bound(self, program):
    """The trips are 3 to 10; start and bound are in the carried tuple."""
    assert program.num_trips(program.instructions['while.1']) == 7

  def test_trips_to_a_bound_in_the_condition(self):
    text = _TEXT.replace(
        's32[]{:T(128)} get-tuple-element(%wide.arg), index=1',
        's32[]{:T(128)} constant(5)',
    )
    program = hlo.parse(text)
    assert program.num_trips(program.instructions['while.1']) == 2

  def test_trips_that_depend_on_data(self, program):
    assert program.num_trips(program.instructions['while.2']) is None

  @pytest.mark.parametrize(
      ('before', 'after'),
      [
          ('%three = s32[]{:T(128)} constant(3)',
           '%three = s32[]{:T(128)} parameter(2)'),
          ('while(%tuple.1)', 'while(%while.1)'),
          ('direction=LT', 'direction=LE'),
      ],
      ids=['a start that is given', 'a carry that is given', 'a last trip'],
  )  # fmt: skip
  def test_trips_between_unknown_bounds(self, before, after):
    assert before in _TEXT
    program = hlo.parse(_TEXT.replace(before, after))
    assert program.num_trips(program.instructions['while.1']) is None
