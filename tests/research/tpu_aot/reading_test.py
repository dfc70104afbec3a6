# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the analysis of loops whose every instruction is given."""

import pytest

from speculative_t5x.research.tpu_aot import hlo
from speculative_t5x.research.tpu_aot import reading
from tests.research.tpu_aot import hlo_texts

WORK = 'f32[8]{0:T(128)} fusion(%count), kind=kLoop, calls=%nothing'
NOTHING = hlo_texts.computation(
    'nothing', '%nothing.arg = f32[8]{0:T(128)} parameter(0)'
)
CACHE, WEIGHTS = hlo_texts.CACHE, hlo_texts.WEIGHTS
COUNT, LOGITS, PRODUCT = hlo_texts.COUNT, hlo_texts.LOGITS, hlo_texts.PRODUCT
POSITIONS = 'bf16[4,64,2]{1,2,0:T(8,128)(2,1)}'
BRANCHES = ' conditional(%count, %count, %count), branch_computations='


def _read_loop(*body, others='', **named):
  text = hlo_texts.program(*body, others=NOTHING + others)
  return reading.read_loop(hlo.parse(text), hlo_texts.SHAPES, **named)


def _read(*body, others=''):
  return _read_loop(*body, others=others)[0]


def _work(name, cycles):
  return f'%{name} = {WORK}{hlo_texts.estimated(cycles)}'


def _fused(kind, taken, *lines):
  """Return the counts of a fusion of some instructions."""
  return _read(
      f'%fused = {kind} fusion({taken}), kind=kOutput, calls=%fused_parts',
      others=hlo_texts.computation('fused_parts', *lines),
  )


@pytest.mark.parametrize(
    ('line', 'counts'),
    [
        ('%out = token[] outfeed(%count)', {'host_transfers': 1}),
        ('%out = (s32[], token[]) infeed(%count)', {'host_transfers': 1}),
        ('%out = (s32[], u32[], token[]) send(%count)', {'host_transfers': 1}),
        ('%out = (s32[], u32[], token[]) recv(%count)', {'host_transfers': 1}),
        (
            '%out = s32[] custom-call(%count),'
            ' custom_call_target="xla_python_cpu_callback"',
            {'host_transfers': 1},
        ),
        (
            f'%written = {CACHE} dynamic-update-slice(%keys, %new, %count,'
            ' %count, %count)',
            {'cache_bytes_written': 2 * 4 * 64 * 2},
        ),
        # As it lies, transposed, and with an axis of one.
        *(
            (
                f'%again = {kind} copy(%keys)',
                {'cache_bytes_remade': hlo_texts.CACHE_BYTES},
            )
            for kind in (
                CACHE,
                'bf16[36,4,64]{2,1,0:T(8,128)}',
                'bf16[1,4,64,36]{3,2,1,0}',
            )
        ),
        # To another layout, transposed, and in another dtype.
        *(
            (
                f'%copied = {kind} copy(%weights)',
                {'weight_bytes_copied': width * 256 * 512},
            )
            for kind, width in (
                (WEIGHTS, 2),
                ('bf16[512,256]{1,0:T(8,128)(2,1)}', 2),
                ('f32[256,512]{1,0:T(8,128)}', 4),
            )
        ),
        (
            f'%best = {COUNT} reduce(%logits), to_apply=%nothing',
            {'vocabulary_passes': 1},
        ),
        (f'%probs = {LOGITS} exponential(%logits)', {'vocabulary_passes': 1}),
        (
            f'%made = {LOGITS} fusion(%vector, %head), calls=%nothing',
            {'vocabulary_passes': 1},
        ),
        (f'%read = {PRODUCT} fusion(%head), calls=%nothing', {}),
        (f'%other = {PRODUCT} tanh(%vector)', {}),
        (f'%view = {LOGITS} bitcast(%logits)', {}),
    ],
)
def test_one_instruction(line, counts):
  assert _read(line) == reading.Reading(**counts)


@pytest.mark.parametrize(
    ('opcode', 'key'),
    [
        ('all-reduce', 'all_reduces'),
        ('all-gather', 'all_gathers'),
        ('reduce-scatter', 'other_collectives'),
        ('all-to-all', 'other_collectives'),
        ('collective-permute', 'other_collectives'),
    ],
)
def test_collectives_are_counted_once(opcode, key):
  """Whether they are synchronous or not."""
  one, made = reading.Reading(**{key: 1}), f'{PRODUCT} {opcode}'
  assert _read(f'%sum = {made}(%vector), channel_id=3') == one
  started = f'%started = {made}-start(%vector), channel_id=3'
  assert _read(started, f'%sum = {made}-done(%started)') == one


@pytest.mark.parametrize(
    'line',
    [
        '%moved = ({kind}, {kind}, u32[]) copy-start({of})',
        '%moved = {kind} copy-done({of})',
        '%moved = {kind} slice-done({of})',
        '%moved = {kind} bitcast({of})',
        '%moved = {kind} custom-call({of}), custom_call_target="ConcatBitcast"',
        '%moved = {kind} custom-call(), custom_call_target="AllocateBuffer"',
    ],
)
@pytest.mark.parametrize(
    ('kind', 'of'), [(WEIGHTS, '%weights'), (CACHE, '%keys')]
)
def test_data_movement_does_not_count(line, kind, of):
  line = line.format(kind=kind, of=of) + hlo_texts.estimated(12345)
  assert _read(line) == reading.Reading()


class TestLoops:

  LATER = hlo_texts.counted('later', 6, _work('draft', 100))

  def test_loops_before_the_decoding_loop_are_ignored(self):
    """An encoder can have one, and no step runs it."""
    text = hlo_texts.program(_work('step', 10), others=NOTHING)
    counted = hlo_texts.counted('encoder', 7, _work('encoded', 1000))
    before = f'  {hlo_texts.looped("encoder")}\n  ROOT %loop'
    text = text.replace('ENTRY', counted + '\nENTRY')
    text = text.replace('  ROOT %loop', before)
    found = reading.read_loop(hlo.parse(text), hlo_texts.SHAPES)
    assert found == (reading.Reading(cycles=10, num_operations=1), None)

  def test_one_trip_of_the_longest_inner_loop(self):
    short = hlo_texts.counted('short', 50, _work('count_up', 30))
    trip, inner = _read_loop(
        _work('first', 1000),
        hlo_texts.looped('later'),
        hlo_texts.looped('short'),
        others=self.LATER + short,
    )
    assert inner == reading.Reading(cycles=100, num_operations=1)
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

  def test_trips_of_a_scatter(self):
    rows = hlo_texts.counted('rows', 8, _work('row', 10))
    loop = hlo_texts.looped('rows', 'jit(loop)/while/body/write/scatter')
    assert _read(loop, others=rows).scatter_trips == 8


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
    found = _read(_work('outside', 2), chosen, others=branches)
    assert (found.cycles, found.num_operations) == (ended + 2, 2)

  def test_transfers_count_in_every_branch(self):
    branches = hlo_texts.computation('cheap', _work('cheap.work', 1))
    branches += hlo_texts.computation(
        'dear', _work('dear.work', 1000), '%out = token[] outfeed(%count)'
    )
    chosen = f'%chosen = f32[8]{BRANCHES}{{%cheap, %dear}}'
    found = _read(chosen, others=branches)
    assert (found.host_transfers, found.cycles) == (1, 1)


class TestFusions:

  def test_cache_written_in_place(self):
    found = _fused(
        CACHE,
        '%keys, %new',
        f'%old = {CACHE} parameter(0)',
        f'%two = {POSITIONS} parameter(1)',
        f'%updated = {CACHE} dynamic-update-slice(%old, %two, %count)',
    )
    assert found == reading.Reading(cache_bytes_written=2 * 4 * 64 * 2)

  def _product(self, taken, *lines):
    return _fused(
        PRODUCT,
        taken,
        f'%left = {hlo_texts.VECTOR} parameter(0)',
        f'%right = {WEIGHTS} parameter(1)',
        *lines,
    )

  def test_product_with_a_vector(self):
    lines = (
        f'%multiplied = {WEIGHTS} multiply(%left, %right)',
        f'%summed = {PRODUCT} reduce(%multiplied), to_apply=%nothing',
    )
    assert self._product('%vector, %weights', *lines).vector_products == 1
    # This one has no weights, like the sum of a norm.
    assert self._product('%vector, %vector', *lines).vector_products == 0

  @pytest.mark.parametrize('opcode', ['convolution', 'dot'])
  @pytest.mark.parametrize(
      ('left', 'made', 'count'),
      [('bf16', 'bf16', 0), ('f32', 'f32', 1), ('bf16', 'f32', 0)],
  )
  def test_product_on_the_matrix_unit(self, opcode, left, made, count):
    """The dtype of operands decides: sums in float32 cost no more."""
    found = self._product(
        '%vector, %weights',
        f'%cast = {left}[1,256]{{1,0}} convert(%left)',
        f'%product = {made}[1,512]{{1,0}} {opcode}(%cast, %right)',
        f'%summed = {PRODUCT} reduce(%product), to_apply=%nothing',
    )
    assert found.float32_products == count
    assert found.vector_products == 0


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
