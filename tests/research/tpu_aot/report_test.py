# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the report on given records, number by number."""

import copy
import dataclasses

import pytest

from speculative_t5x.research.paper import published
from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.research.tpu_aot import report
from speculative_t5x.speculation import theory

GIB = 2**30


def _program(cycles, chip='v4', draft_cycles=None, **step):
  """Returns a program of a record."""
  draft_step = None
  if draft_cycles is not None:
    draft_step = reading.Reading(cycles=draft_cycles)
  program = programs.Program(
      compile_s=61.4,
      step=reading.Reading(cycles=cycles, **step),
      draft_step=draft_step,
      memory=programs.Memory(21 * GIB, GIB // 2, GIB // 4, GIB // 8),
  )
  step_s = chips.CHIPS[chip].seconds(cycles)
  return dataclasses.asdict(program) | {'step_s': step_s}


_CALL = {
    'weight_bytes': 1_500_000, 'cache_bytes': 250_000, 'operations': 3_000_000,
}  # fmt: skip


def _model(name, one_row, padded, chip):
  return {
      'name': f't5_1_1_{name}',
      'num_params': 123,
      'calls': [
          {**_CALL, 'block': 1, 'seconds': 11e-6},
          {**_CALL, 'block': 8, 'seconds': 22e-6},
      ],
      'steps': {
          'one_row': _program(
              one_row, chip, vector_products=17, num_operations=905
          ),
          'padded': _program(padded, chip, num_operations=805),
      },
  }


def _verify(gamma, chip):
  return {
      'gamma': gamma,
      'call': {**_CALL, 'block': gamma + 1, 'seconds': (gamma + 15) * 1e-6},
      'program': _program(4_500_000, chip, num_operations=707),
  }


def _pair(draft, gamma, cycles, chip):
  return {
      'draft': f't5_1_1_{draft}',
      'gamma': gamma,
      'loop': _program(
          cycles,
          chip,
          draft_cycles=cycles // 100,
          all_reduces=31,
          all_gathers=32,
          other_collectives=33,
          host_transfers=34,
          cache_bytes_written=1_110_000,
          cache_bytes_remade=2_220_000,
          weight_bytes_copied=3_330_000,
          float32_products=35,
          scatter_trips=36,
          vocabulary_passes=37,
      ),
  }


def _record(chip='v4', pairs=(('small', 7, 9_000_000),), **changes):
  """Returns a record of XXL; its padded step has 5 million cycles."""
  record = {
      'chip': dataclasses.asdict(chips.CHIPS[chip]),
      'topology': f'{chip}:1x1x1',
      'mesh': {},
      'device': {'jax': '9.8.7'},
      'libtpu': '6.5.4',
      'dtype': 'bfloat16',
      'batch_size': 1,
      'inputs_length': 512,
      'targets_length': 128,
      'target': _model('xxl', 20_000_000, 5_000_000, chip),
      'drafts': [
          _model(draft, 400_000, 300_000, chip)
          for draft in dict.fromkeys(draft for draft, _, _ in pairs)
      ],
      'verify': [
          _verify(gamma, chip)
          for gamma in dict.fromkeys(gamma for _, gamma, _ in pairs)
      ],
      'pairs': [_pair(*pair, chip) for pair in pairs],
      't5x_step': None,
      'row_writes': [],
      'table_2': [
          dataclasses.asdict(row) | {'c': 0.015, 'speedup': 2.75}
          for row in published.TABLES_2_AND_4
      ],
  }
  return record | changes


def _section(text, title):
  """Returns the rows of a section's table, each by column."""
  (part,) = [p for p in text.split('\n## ') if p.startswith(title)]
  lines = [line for line in part.splitlines() if line.startswith('|')]
  header, _, *rows = [line.strip('| ').split(' | ') for line in lines]
  return [dict(zip(header, row, strict=True)) for row in rows]


def _table_2(record, draft='small', gamma=7):
  """Returns the first row of a draft and a gamma."""
  rows = _section(report.render(record), 'Table 2')
  return next(
      row
      for row in rows
      if row['draft'] == draft and row['gamma'] == str(gamma)
  )


class TestHeading:

  def test_heading(self):
    first, _, second, *_ = report.render(_record()).splitlines()
    assert first == '# t5_1_1_xxl on v4:1x1x1'
    assert second == (
        'Compiled ahead of time by JAX 9.8.7 and libtpu 6.5.4; nothing ran.'
        ' bfloat16, batch 1, 512 input and 128 output tokens. Per chip: 32'
        ' GiB, 1,228 GB/s, 275 TFLOP/s, clock 1,050 MHz.'
    )

  def test_a_mesh(self):
    text = report.render(_record(mesh={'data': 2, 'model': 4}))
    assert text.startswith('# t5_1_1_xxl on v4:1x1x1, mesh 2 x 4\n')

  def test_sections(self):
    text = report.render(_record())
    titles = [line[3:] for line in text.splitlines() if line[:3] == '## ']
    assert titles == [
        'Memory per device while the loop runs', 'Steps',
        'What the loop does', 'c of each draft', 'Table 2 of the paper',
    ]  # fmt: skip


class TestMemory:

  def test_memory_of_the_loop(self):
    (row,) = _section(report.render(_record()), 'Memory')
    assert list(row.values()) == [
        't5_1_1_xxl with t5_1_1_small', '7', '21.00', '0.50', '0.12', '21.88',
        '68%', '61',
    ]  # fmt: skip


class TestSteps:

  def test_each_form_of_each_model(self):
    rows = _section(report.render(_record()), 'Steps')
    found = [(row['step'], row['form'], row['cycles'], row['us'])
             for row in rows]  # fmt: skip
    assert found == [
        ('target t5_1_1_xxl', 'one row', '20,000,000', '19,048'),
        ('target t5_1_1_xxl', 'padded to 4', '5,000,000', '4,762'),
        ('draft t5_1_1_small', 'one row', '400,000', '381'),
        ('draft t5_1_1_small', 'padded to 4', '300,000', '286'),
        ('target t5_1_1_xxl', 'verify 8', '4,500,000', '4,286'),
    ]

  def test_counts(self):
    rows = _section(report.render(_record()), 'Steps')
    counted = ('roofline us', 'weights MB', 'caches MB', 'MFLOP')
    found = [[row[key] for key in counted] for row in rows]
    assert found == [['11', '1.5', '0.2', '3']] * 4 + [
        ['22', '1.5', '0.2', '3']
    ]
    read = [(row['products on the VPU'], row['instructions']) for row in rows]
    assert read[0] == ('17', '905') and read[1] == ('0', '805')
    assert read[-1] == ('0', '707')

  def test_verifying_by_gamma(self):
    pairs = [('small', gamma, 9_000_000) for gamma in (3, 7)]
    rows = _section(report.render(_record(pairs=pairs)), 'Steps')
    assert [row['form'] for row in rows[-2:]] == ['verify 4', 'verify 8']
    assert [row['roofline us'] for row in rows[-2:]] == ['18', '22']

  def test_t5x_step(self):
    text = report.render(_record(t5x_step=_program(30_000_000)))
    row = _section(text, 'Steps')[-1]
    assert row['step'] == "T5X's own, t5_1_1_xxl"
    assert (row['cycles'], row['roofline us']) == ('30,000,000', '-')


class TestLoops:

  def test_each_number(self):
    (row,) = _section(report.render(_record()), 'What the loop does')
    assert row == {
        'loop': 't5_1_1_xxl with t5_1_1_small', 'gamma': '7',
        'cycles': '9,000,000', 'us': '8,571', 'host transfers': '34',
        'all-reduces': '31', 'all-gathers': '32', 'other collectives': '33',
        'cache MB written': '1.11', 'cache MB made anew': '2.22',
        'weight MB copied': '3.33', 'float32 products': '35',
        'scatter trips': '36', 'passes over logits': '37',
    }  # fmt: skip

  def test_several_gammas_and_drafts(self):
    pairs = [
        (draft, gamma, 1000 * gamma)
        for draft in ('small', 'base')
        for gamma in (3, 7)
    ]
    text = report.render(_record(pairs=pairs))
    rows = _section(text, 'What the loop does')
    found = [(row['loop'][-5:], row['gamma'], row['cycles']) for row in rows]
    assert found == [
        ('small', '3', '3,000'), ('small', '7', '7,000'),
        ('_base', '3', '3,000'), ('_base', '7', '7,000'),
    ]  # fmt: skip
    assert len(_section(text, 'Memory')) == 4


class TestRowWrites:

  def test_both_forms(self):
    writes = [
        {'form': form, 'block': block, 'program': _program(
            cycles, scatter_trips=trips)}
        for form, block, cycles, trips in (
            ('a scatter', 1, 64_000, 16), ('a selection', 1, 8_000, 0),
        )
    ]  # fmt: skip
    text = report.render(_record(batch_size=8, row_writes=writes))
    rows = _section(text, 'Writing where')
    assert [list(row.values()) for row in rows] == [
        ['a scatter', '1', '64,000', '16'],
        ['a selection', '1', '8,000', '0'],
    ]
    assert 'batch 8,' in text

  def test_single_row(self):
    assert 'Writing where' not in report.render(_record())


class TestUnknownClock:

  def test_no_times_and_the_same_ratios(self):
    known, unknown = _record(), _record('v6e')
    text = report.render(unknown)
    assert 'clock unknown.' in text
    assert {row['us'] for row in _section(text, 'Steps')} == {'-'}
    assert {row['us'] for row in _section(text, 'What the loop')} == {'-'}
    # Bytes and ratios need no clock.
    assert _section(text, 'Steps')[0]['roofline us'] == '11'
    assert _table_2(unknown) == _table_2(known)


class TestTable2:

  def test_all_rows_are_the_paper_s(self):
    rows = _section(report.render(_record()), 'Table 2')
    assert len(rows) == 12
    for row, printed in zip(rows, published.TABLES_2_AND_4):
      assert row['task'] == printed.task and row['draft'] == printed.draft
      assert row['T'] == str(printed.temperature)
      assert row['gamma'] == str(printed.gamma)
      assert row['alpha'] == f'{printed.alpha:.2f}'
      assert row["the paper's c"] == f'{printed.cost_coefficient:.2f}'
      assert row['EXP'] == str(printed.predicted)
      assert row['EMP'] == str(printed.measured)
      assert (row['c by roofline'], row['roofline']) == ('0.015', '2.75')

  def test_costs(self):
    row = _table_2(_record())
    assert row['c compiled'] == '0.018'  # 90,000 over 5,000,000
    assert row['c one row'] == '0.020'  # 400,000 over 20,000,000

  def test_speedups(self):
    """At alpha 0.75 and gamma 7, a trip has 9,000,000 cycles."""
    row = _table_2(_record(t5x_step=_program(30_000_000)))
    tokens = float(theory.expected_tokens(0.75, 7))
    assert row['compiled'] == f'{tokens * 5 / 9:.2f}'
    assert row['over one row'] == f'{tokens * 20 / 9:.2f}'
    assert row["over T5X's"] == f'{tokens * 30 / 9:.2f}'

  def test_speedup_is_over_the_faster_form(self):
    record = _record()
    record['target']['steps']['padded']['step']['cycles'] = 40_000_000
    row = _table_2(record)
    assert row['compiled'] == row['over one row']
    assert row['c compiled'] == f'{90_000 / 20_000_000:.3f}'

  @pytest.mark.parametrize(
      ('draft', 'gamma', 'costs'),
      [('small', 5, ['-', '0.020']), ('base', 7, ['-', '-'])],
      ids=['gamma', 'draft'],
  )
  def test_drafts_that_were_not_compiled(self, draft, gamma, costs):
    row = _table_2(_record(), draft, gamma)
    assert [row['c compiled'], row['c one row']] == costs
    over = ('compiled', 'over one row', "over T5X's")
    assert [row[key] for key in over] == ['-'] * 3
    assert row['roofline'] == '2.75'

  def test_loop_with_gamma_1(self):
    """It has no later draft token with numbers of its own."""
    record = _record()
    record['pairs'][0]['loop']['draft_step'] = None
    row = _table_2(record)
    assert row['c compiled'] == '-' and row['compiled'] != '-'


def _numbers(value, path=()):
  """Yields paths to all counts of cycles in a record."""
  if isinstance(value, dict):
    items = value.items()
  elif isinstance(value, list):
    items = enumerate(value)
  else:
    if path[-1] == 'cycles':
      yield path
    return
  for key, inner in items:
    yield from _numbers(inner, (*path, key))


def test_every_count_of_cycles_is_reported():
  """Changing a count changes the report."""
  record = _record(t5x_step=_program(30_000_000))
  text = report.render(record)
  paths = list(_numbers(record))
  assert len(paths) == 8
  for path in paths:
    changed = copy.deepcopy(record)
    at = changed
    for key in path[:-1]:
      at = at[key]
    at['cycles'] *= 3
    assert report.render(changed) != text, path
