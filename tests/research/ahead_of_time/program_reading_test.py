# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the analysis of loops whose every instruction is given."""

import pytest

from speculative_t5x.research.ahead_of_time import hlo
from speculative_t5x.research.ahead_of_time import program_reading
from tests.research.ahead_of_time import hlo_texts

WORK = 'f32[8]{0:T(128)} fusion(%count), kind=kLoop, calls=%nothing'
NOTHING = hlo_texts.computation(
    'nothing', '%nothing.arg = f32[8]{0:T(128)} parameter(0)'
)
VECTOR = hlo_texts.VECTOR
BRANCHES = ' conditional(%count, %count, %count), branch_computations='


def _read_loop(*body, others='', **named):
  text = hlo_texts.program(*body, others=NOTHING + others)
  return program_reading.read_loop(hlo.parse(text), **named)


def _read(*body, others='', on_gpu=False):
  return _read_loop(*body, others=others, on_gpu=on_gpu)[0]


# On a GPU the host reads the condition of the loop itself.
GPU = program_reading.Reading(host_transfers=1)


def _work(name, cycles):
  return f'%{name} = {WORK}{hlo_texts.estimated(cycles)}'


@pytest.mark.parametrize(
    ('line', 'counts', 'on_gpu'),
    [
        ('%out = token[] outfeed(%count)', (0, 0, 1), (0, 1, 1)),
        ('%out = (s32[], token[]) infeed(%count)', (0, 0, 1), (0, 1, 1)),
        ('%out = (s32[], u32[], token[]) send(%count)', (0, 0, 1), (0, 1, 1)),
        ('%out = (s32[], u32[], token[]) recv(%count)', (0, 0, 1), (0, 1, 1)),
        (
            '%out = s32[] custom-call(%count),'
            ' custom_call_target="xla_python_cpu_callback"',
            (0, 0, 1),
            (0, 1, 1),
        ),
        (
            '%product = (f32[8]{0}, s8[64]{0}) custom-call(%count),'
            ' custom_call_target="__cublas$gemm"',
            (0, 0, 0),
            (0, 1, 0),
        ),
        (_work('some', 12), (12, 1, 0), (12, 1, 0)),
        # Data that moves, or only has another name.
        *(
            (f'%moved = {line}{hlo_texts.estimated(12345)}', (0, 0, 0), None)
            for line in (
                f'({VECTOR}, {VECTOR}, u32[]) copy-start(%vector)',
                f'{VECTOR} copy-done(%vector)',
                f'{VECTOR} slice-done(%vector)',
                f'{VECTOR} bitcast(%vector)',
                f'{VECTOR} custom-call(), custom_call_target="AllocateBuffer"',
            )
        ),
    ],
)
def test_one_instruction(line, counts, on_gpu):
  assert _read(line) == program_reading.Reading(*counts)
  assert _read(line, on_gpu=True) == GPU + program_reading.Reading(
      *on_gpu or counts
  )


class TestLoops:

  LATER = hlo_texts.counted('later', 6, _work('draft', 100))

  def test_loops_before_the_decoding_loop_are_ignored(self):
    """An encoder can have one, and no step runs it."""
    text = hlo_texts.program(_work('step', 10), others=NOTHING)
    counted = hlo_texts.counted('encoder', 7, _work('encoded', 1000))
    before = f'  {hlo_texts.looped("encoder")}\n  ROOT %loop'
    text = text.replace('ENTRY', counted + '\nENTRY')
    text = text.replace('  ROOT %loop', before)
    found = program_reading.read_loop(hlo.parse(text))
    assert found == (program_reading.Reading(cycles=10, num_operations=1), None)

  def test_one_trip_of_the_longest_inner_loop(self):
    short = hlo_texts.counted('short', 50, _work('count_up', 30))
    trip, inner = _read_loop(
        _work('first', 1000),
        hlo_texts.looped('later'),
        hlo_texts.looped('short'),
        others=self.LATER + short,
    )
    assert inner == program_reading.Reading(cycles=100, num_operations=1)
    assert trip.cycles == 1000 + 6 * 100 + 50 * 30
    assert trip.num_operations == 1 + 6 + 50

  @pytest.mark.parametrize('num_trips', [0, 5])
  def test_trips_that_depend_on_data_are_those_of_a_scope(self, num_trips):
    more = hlo_texts.counted('more', 9, _work('draft', 100))
    more = more.replace('direction=LT', 'direction=EQ')  # no known bound
    first = hlo_texts.counted('first', 1, _work('longer', 300))
    scoped = 'jit(loop)/while/body/draft/later/while'
    body = hlo_texts.looped('first'), hlo_texts.looped('more', scoped)
    with pytest.raises(TypeError):
      _read_loop(*body, others=more + first, num_trips={'late': 3})
    trip, inner = _read_loop(
        *body,
        others=more + first,
        num_trips={'later': num_trips},
        repeated='later',
    )
    assert trip.cycles == 300 + 100 * num_trips
    assert inner.cycles == 100
    on_gpu, _ = _read_loop(
        *body,
        others=more + first,
        num_trips={'later': num_trips},
        on_gpu=True,
    )
    # The host reads the condition before each trip and after the last.
    assert on_gpu.host_transfers == 1 + num_trips + 1


class TestBranches:

  @pytest.mark.parametrize('cycles', [(500, 40), (40, 500)])
  @pytest.mark.parametrize(
      'roles',
      [
          'branch_computations={%asks, %ends}',
          'true_computation=%asks, false_computation=%ends',
      ],
  )
  def test_branch_without_further_conditions_counts(self, cycles, roles):
    """The other branch is for other samplings."""
    asked, ended = cycles
    again = f'%again = f32[8]{BRANCHES}{{%x, %y}}'
    branches = (
        hlo_texts.computation('x', _work('x.work', 1))
        + hlo_texts.computation('y', _work('y.work', 1))
        + hlo_texts.computation('asks', _work('asked', asked), again)
        + hlo_texts.computation('ends', _work('ended', ended))
    )
    chosen = '%chosen = f32[8]{0} conditional(%count, %count, %count), ' + roles
    body = _work('outside', 2), chosen
    found = _read(*body, others=branches)
    assert found == program_reading.Reading(ended + 2, 2, 0)
    on_gpu = _read(*body, others=branches, on_gpu=True)
    assert on_gpu == GPU + program_reading.Reading(ended + 2, 2, 1)

  def test_loop_of_the_branch_that_counts(self):
    """A head drafts in one: where rows are sampled, in a longer one."""
    others = ''.join(
        hlo_texts.counted(f'drafts.{name}', 6, _work(f'{name}.work', cycles))
        + hlo_texts.computation(name, hlo_texts.looped(f'drafts.{name}'))
        for name, cycles in (('sampled', 70), ('argmax', 40))
    )
    chosen = f'%chosen = f32[8]{BRANCHES}{{%sampled, %argmax}}'
    trip, inner = _read_loop(chosen, others=others)
    assert (trip.cycles, inner.cycles) == (6 * 40, 40)


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
