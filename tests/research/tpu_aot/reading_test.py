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


def _read_loop(*body: str, others: str = '') -> reading.Loop:
  text = hlo_texts.program(*body, others=NOTHING + others)
  return reading.read_loop(hlo.parse(text), hlo_texts.SHAPES)


def _read(*body: str, others: str = '') -> reading.Reading:
  return _read_loop(*body, others=others).trip


def _work(name: str, cycles: int) -> str:
  return f'%{name} = {WORK}{hlo_texts.estimated(cycles)}'


def _fused(kind: str, taken: str, *lines: str) -> reading.Reading:
  """Returns a fusion of some instructions."""
  return _read(
      f'%fused = {kind} fusion({taken}), kind=kOutput, calls=%fused_parts',
      others=hlo_texts.computation('fused_parts', *lines),
  )


class TestReadLoop:

  def test_counted_loops_are_ignored(self):
    """An encoder before the loop can have one, and no step runs it."""
    text = hlo_texts.program(_work('step', 10), others=NOTHING)
    counted = hlo_texts.counted('encoder', 7, _work('encoded', 1000))
    before = f'  {hlo_texts.looped("encoder")}\n  ROOT %loop'
    text = text.replace('ENTRY', counted + '\nENTRY')
    text = text.replace('  ROOT %loop', before)
    found = reading.read_loop(hlo.parse(text), hlo_texts.SHAPES)
    assert found.trip == reading.Reading(cycles=10, num_operations=1)
    assert found.inner_trip is None


class TestInnerTrip:

  LATER = hlo_texts.counted('later', 6, _work('draft', 100))

  def test_one_trip_of_the_inner_loop(self):
    found = _read_loop(
        _work('first', 1000), hlo_texts.looped('later'), others=self.LATER
    )
    assert found.inner_trip == reading.Reading(cycles=100, num_operations=1)
    assert found.trip.cycles == 1000 + 6 * 100

  def test_longest_of_several_inner_loops(self):
    short = hlo_texts.counted('short', 50, _work('count_up', 30))
    found = _read_loop(
        hlo_texts.looped('later'),
        hlo_texts.looped('short'),
        others=self.LATER + short,
    )
    assert found.inner_trip.cycles == 100


class TestTripsOfAScope:
  """The trips of a loop that depends on data are those of its scope."""

  @pytest.mark.parametrize('num_trips', [0, 5])
  def test_trips(self, num_trips):
    more = hlo_texts.counted('more', 9, _work('draft', 100))
    more = more.replace('direction=LT', 'direction=EQ')  # no known bound
    first = hlo_texts.counted('first', 1, _work('longer', 300))
    scoped = 'jit(loop)/while/body/draft/later/while'
    text = hlo_texts.program(
        hlo_texts.looped('first'),
        hlo_texts.looped('more', scoped),
        others=NOTHING + more + first,
    )
    read = lambda **named: reading.read_loop(
        hlo.parse(text), hlo_texts.SHAPES, **named
    )
    with pytest.raises(ValueError, match='unknown number of trips'):
      read(num_trips={'late': 3})
    found = read(num_trips={'later': num_trips}, repeated='later')
    assert found.trip.cycles == 300 + 100 * num_trips
    assert found.inner_trip.cycles == 100


class TestCycles:

  def test_inner_loop_counts_per_trip(self):
    found = _read(
        _work('outside', 5),
        hlo_texts.looped('scan'),
        others=hlo_texts.counted('scan', 7, _work('inside', 100)),
    )
    assert (found.cycles, found.num_operations) == (705, 8)

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
    asks = (
        '%again = f32[8]{0} conditional(%count, %count, %count),'
        ' branch_computations={%x, %y}'
    )
    branches = (
        hlo_texts.computation('x', _work('x.work', 1))
        + hlo_texts.computation('y', _work('y.work', 1))
        + hlo_texts.computation('asks', _work('asked', asked), asks)
        + hlo_texts.computation('ends', _work('ended', ended))
    )
    chosen = '%chosen = f32[8]{0} conditional(%count, %count, %count), ' + roles
    found = _read(_work('outside', 2), chosen, others=branches)
    assert (found.cycles, found.num_operations) == (ended + 2, 2)

  @pytest.mark.parametrize(
      'line',
      [
          '%moved = ({kind}, {kind}, u32[]) copy-start({of})',
          '%moved = {kind} copy-done({of})',
          '%moved = {kind} slice-start({of})',
          '%moved = {kind} slice-done({of})',
          '%moved = {kind} bitcast({of})',
          '%moved = {kind} custom-call({of}),'
          ' custom_call_target="ConcatBitcast"',
          '%moved = {kind} custom-call(), custom_call_target="AllocateBuffer"',
      ],
  )
  @pytest.mark.parametrize(
      ('kind', 'of'), [(WEIGHTS, '%weights'), (CACHE, '%keys')]
  )
  def test_data_movement_does_not_count(self, line, kind, of):
    line = line.format(kind=kind, of=of) + hlo_texts.estimated(12345)
    assert _read(line) == reading.Reading()


class TestCollectives:

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
  def test_synchronous_and_asynchronous(self, opcode, key):
    one = reading.Reading(**{key: 1})
    made = f'{PRODUCT} {opcode}'
    assert _read(f'%sum = {made}(%vector), channel_id=3') == one
    apart = (
        f'%started = {made}-start(%vector), channel_id=3',
        f'%sum = {made}-done(%started)',
    )
    assert _read(*apart) == one


class TestHostTransfers:

  @pytest.mark.parametrize(
      'line',
      [
          '%out = token[] outfeed(%count)',
          '%out = (s32[], token[]) infeed(%count)',
          '%out = (s32[], u32[], token[]) send(%count), channel_id=2',
          '%out = (s32[], u32[], token[]) recv(%count), channel_id=2',
          '%out = s32[] custom-call(%count),'
          ' custom_call_target="xla_python_cpu_callback"',
      ],
  )
  def test_counts(self, line):
    assert _read(line).host_transfers == 1

  def test_branch_that_is_not_taken(self):
    branches = hlo_texts.computation('cheap', _work('cheap.work', 1))
    branches += hlo_texts.computation(
        'dear', _work('dear.work', 1000), '%out = token[] outfeed(%count)'
    )
    chosen = (
        '%chosen = f32[8]{0} conditional(%count, %count, %count),'
        ' branch_computations={%cheap, %dear}'
    )
    found = _read(chosen, others=branches)
    assert (found.host_transfers, found.cycles) == (1, 1)


class TestCaches:

  UPDATE = 'dynamic-update-slice({}, {}, %count, %count, %count)'

  def test_written_in_place(self):
    found = _read(f'%written = {CACHE} {self.UPDATE.format("%keys", "%new")}')
    assert found.cache_bytes_written == 2 * 4 * 64 * 2
    assert found.cache_bytes_remade == 0

  def test_written_in_place_by_a_fusion(self):
    found = _fused(
        CACHE,
        '%keys, %new',
        f'%old = {CACHE} parameter(0)',
        f'%two = {POSITIONS} parameter(1)',
        f'%updated = {CACHE} {self.UPDATE.format("%old", "%two")}',
    )
    assert found.cache_bytes_written == 2 * 4 * 64 * 2
    assert found.cache_bytes_remade == 0

  @pytest.mark.parametrize(
      'kind',
      [CACHE, 'bf16[36,4,64]{2,1,0:T(8,128)}', 'bf16[1,4,64,36]{3,2,1,0}'],
      ids=['as it lies', 'transposed', 'with an axis of one'],
  )
  def test_rewritten_cache(self, kind):
    found = _read(f'%again = {kind} copy(%keys)')
    assert found.cache_bytes_remade == hlo_texts.CACHE_BYTES
    assert found.cache_bytes_written == 0


class TestWeights:

  @pytest.mark.parametrize(
      ('kind', 'num_bytes'),
      [
          (WEIGHTS, 2 * 256 * 512),
          ('bf16[512,256]{1,0:T(8,128)(2,1)}', 2 * 256 * 512),
          ('f32[256,512]{1,0:T(8,128)}', 4 * 256 * 512),
      ],
      ids=['another layout', 'transposed', 'another dtype'],
  )
  def test_copied_weights(self, kind, num_bytes):
    assert _read(f'%copied = {kind} copy(%weights)').weight_bytes_copied == (
        num_bytes
    )

  def _product(self, taken: str, *lines: str) -> reading.Reading:
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
  def test_product_on_the_matrix_unit(self, opcode):
    found = self._product(
        '%vector, %weights',
        f'%product = {PRODUCT} {opcode}(%left, %right)',
        f'%summed = {PRODUCT} reduce(%product), to_apply=%nothing',
    )
    assert found.vector_products == 0

  @pytest.mark.parametrize('opcode', ['convolution', 'dot'])
  @pytest.mark.parametrize(
      ('left', 'made', 'count'),
      [('bf16', 'bf16', 0), ('f32', 'f32', 1), ('bf16', 'f32', 0)],
  )
  def test_float32_product(self, opcode, left, made, count):
    """The operands decide: sums in float32 cost no more."""
    found = self._product(
        '%vector, %weights',
        f'%cast = {left}[1,256]{{1,0}} convert(%left)',
        f'%product = {made}[1,512]{{1,0}} {opcode}(%cast, %right)',
    )
    assert found.float32_products == count


class TestScatter:

  ROWS = hlo_texts.counted('rows', 8, _work('row', 10))

  def test_trips_of_a_scatter(self):
    loop = hlo_texts.looped('rows', 'jit(loop)/while/body/write/scatter')
    assert _read(loop, others=self.ROWS).scatter_trips == 8


class TestVocabularyPasses:

  @pytest.mark.parametrize(
      ('line', 'count'),
      [
          (f'%best = {COUNT} reduce(%logits), to_apply=%nothing', 1),
          (f'%distribution = {LOGITS} exponential(%logits)', 1),
          (f'%made = {LOGITS} fusion(%vector, %head), calls=%nothing', 1),
          (f'%read = {PRODUCT} fusion(%head), calls=%nothing', 0),
          (f'%other = {PRODUCT} tanh(%vector)', 0),
          (f'%view = {LOGITS} bitcast(%logits)', 0),
      ],
      ids=['taken', 'both', 'made', 'the head', 'none', 'a view'],
  )
  def test_counts(self, line, count):
    assert _read(line).vocabulary_passes == count
