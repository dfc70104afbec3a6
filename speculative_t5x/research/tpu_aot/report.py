# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of a tpu-preflight record, in Markdown."""

from collections.abc import Iterator
from typing import Any

from speculative_t5x.research.reports import markdown
from speculative_t5x.speculation import theory

Record = dict[str, Any]

_GIB = 2**30
_MEGA = 1e6
_NONE = '-'
_FORMS = {'one_row': 'one row', 'padded': 'padded to 4'}

_STEPS_KEY = """cycles: estimated by the compiler for one step, which includes
the argmax over the vocabulary; time spent waiting for memory or for other chips
is not counted. us: the cycles at the chip's clock; the time of a step is no
less than the larger of us and roofline us. roofline us: bytes over the
published bandwidth, or operations over the peak. Weights, caches, MFLOP and
roofline count the requested positions only; a step padded to 4 computes four
positions and discards three. instructions: those that take cycles."""
_LOOP_KEY = """Per step of the loop, which makes gamma draft tokens and verifies
them. cache MB written: new positions, in place; cache MB made anew: copies of
whole caches; weight MB copied: into another layout or dtype; float32 products:
on the matrix unit; scatter trips: of loops that write one row at a time; passes
over logits: instructions on arrays as wide as the vocabulary."""
_DRAFTS_KEY = """c is the cost of a draft token over that of a plain step, as in
Table 2. roofline: from the bytes. compiled: the cycles of a later draft step of
the loop over those of the faster form of the plain step. one row: both in
one-row form. The draft's encoder is left out; drafts that share the target's
have none. -: a table has no step outside of the loop."""
_TABLE_2_KEY = """alpha, gamma, the paper's c, EXP (expected) and EMP (measured)
are those of T5-XXL on a TPU v4, from Tables 2 and 4. The speedups to their
right are estimated here. roofline: from the times of the roofline. compiled:
from the cycles of the loop, relative to the faster form of the plain step. over
one row: relative to its one-row form. over T5X's: relative to T5X's own step,
if T5X is installed. Encoders are left out, and rows with T=1 use the cycles of
argmax too. -: not compiled with this draft and gamma, or several chips, whose
waiting for each other has no cycles."""


def render(record: Record) -> markdown.Page:
  """Returns the report."""
  sections = [
      _heading(record),
      _memory(record),
      _steps(record),
      _loops(record),
      _row_writes(record),
      _drafts(record),
      _table_2(record),
  ]
  return markdown.page(sections, [record])


def _heading(record: Record) -> str:
  chip = record['chip']
  clock = 'unknown'
  if chip['clock_hz']:
    clock = f'{chip["clock_hz"] / 1e6:,.0f} MHz'
  mesh = record['mesh']
  placed = f', mesh {mesh["data"]} x {mesh["model"]}' if mesh else ''
  return '\n'.join(
      [
          f'# {record["target"]["name"]} on {record["topology"]}{placed}',
          '',
          f'Compiled ahead of time by JAX {record["device"]["jax"]} and libtpu'
          f' {record["libtpu"]}; nothing ran. {record["dtype"]}, batch'
          f' {record["batch_size"]}, {record["inputs_length"]} input and'
          f' {record["targets_length"]} output tokens. Per chip:'
          f' {chip["memory_bytes"] / _GIB:.0f} GiB,'
          f' {chip["bandwidth"] / 1e9:,.0f} GB/s, {chip["peak"] / 1e12:.0f}'
          f' TFLOP/s, clock {clock}.',
      ]
  )


def _memory(record: Record) -> str:
  header = [
      'pair', 'gamma', 'arguments GiB', 'temporaries GiB', 'code GiB',
      'all GiB', "of the chip's", 'compiled in s',
  ]  # fmt: skip
  capacity = record['chip']['memory_bytes']
  rows = []
  for pair in record['pairs']:
    taken = pair['loop']['memory']
    total = sum(taken.values())
    rows.append([
        _pair_name(record, pair),
        str(pair['gamma']),
        *(f'{taken[key] / _GIB:.2f}'
          for key in ('arguments', 'temporaries', 'code')),
        f'{total / _GIB:.2f}',
        f'{100 * total / capacity:.0f}%',
        f'{pair["loop"]["compile_s"]:.0f}',
    ])  # fmt: skip
  return _section('Memory per device while the loop runs', header, rows)


def _steps(record: Record) -> str:
  header = [
      'step', 'form', 'cycles', 'us', 'roofline us', 'weights MB',
      'caches MB', 'MFLOP', 'products on the VPU', 'instructions',
  ]  # fmt: skip
  rows = [
      _step_row(
          f'{role} {model["name"]}', _FORMS[form], program, model['calls'][0]
      )
      for role, models in (
          ('target', [record['target']]),
          ('draft', record['drafts']),
      )
      for model in models
      for form, program in model['steps'].items()
  ]
  rows += [
      _step_row(
          f'target {record["target"]["name"]}',
          f'verify {each["gamma"] + 1}',
          each['program'],
          each['call'],
      )
      for each in record['verify']
  ]
  if record['t5x_step']:
    name = f"T5X's own, {record['target']['name']}"
    rows.append(_step_row(name, 'one row', record['t5x_step'], None))
  return _section('Steps', header, rows, _STEPS_KEY)


def _step_row(
    name: str, form: str, program: Record, call: Record | None
) -> list[str]:
  step = program['step']
  counted = [_NONE] * 4
  if call:
    counted = [
        f'{1e6 * call["seconds"]:,.0f}',
        f'{call["weight_bytes"] / _MEGA:,.1f}',
        f'{call["cache_bytes"] / _MEGA:,.1f}',
        f'{call["operations"] / _MEGA:,.0f}',
    ]
  return [
      name,
      form,
      f'{step["cycles"]:,}',
      _microseconds(program['step_s']),
      *counted,
      str(step['vector_products']),
      str(step['num_operations']),
  ]


def _loops(record: Record) -> str:
  header = [
      'loop', 'gamma', 'cycles', 'us', 'host transfers', 'all-reduces',
      'all-gathers', 'other collectives', 'cache MB written',
      'cache MB made anew', 'weight MB copied', 'float32 products',
      'scatter trips', 'passes over logits',
  ]  # fmt: skip
  rows = []
  for pair in record['pairs']:
    step = pair['loop']['step']
    rows.append(
        [
            _pair_name(record, pair),
            str(pair['gamma']),
            f'{step["cycles"]:,}',
            _microseconds(pair['loop']['step_s']),
            str(step['host_transfers']),
            str(step['all_reduces']),
            str(step['all_gathers']),
            str(step['other_collectives']),
            f'{step["cache_bytes_written"] / _MEGA:.2f}',
            f'{step["cache_bytes_remade"] / _MEGA:.2f}',
            f'{step["weight_bytes_copied"] / _MEGA:.2f}',
            str(step['float32_products']),
            str(step['scatter_trips']),
            str(step['vocabulary_passes']),
        ]
    )
  return _section('What the loop does', header, rows, _LOOP_KEY)


def _row_writes(record: Record) -> str:
  if not record['row_writes']:
    return ''
  header = ['written by', 'positions', 'cycles', 'trips of its loops']
  rows = [
      [
          each['form'],
          str(each['block']),
          f'{each["program"]["step"]["cycles"]:,}',
          str(each['program']['step']['scatter_trips']),
      ]
      for each in record['row_writes']
  ]
  key = 'In one layer of the target, with the attention that reads the cache.'
  return _section('Writing where each row stands elsewhere', header, rows, key)


def _drafts(record: Record) -> str:
  if record['mesh']:  # communication has no cycles
    return ''
  header = ['draft', 'parameters', 'gamma', 'roofline', 'compiled', 'one row']
  drafts = {draft['name']: draft for draft in record['drafts']}
  rows = []
  for pair in record['pairs']:
    draft = drafts[pair['draft']]
    rows.append(
        [
            draft['name'],
            f'{draft["num_params"]:,}',
            str(pair['gamma']),
            _roofline_ratio(record, draft, '.4f'),
            compiled_cost(record, pair, '.4f'),
            _one_row_ratio(record, draft, '.4f'),
        ]
    )
  return _section('c of each draft', header, rows, _DRAFTS_KEY)


def _table_2(record: Record) -> str:
  header = [
      'task', 'draft', 'T', 'gamma', 'alpha', "the paper's c", 'c by roofline',
      'c compiled', 'c one row', 'EXP', 'EMP', 'roofline', 'compiled',
      'over one row', "over T5X's",
  ]  # fmt: skip
  rows = [
      [
          row['task'],
          row['draft'],
          str(row['temperature']),
          str(row['gamma']),
          f'{row["alpha"]:.2f}',
          f'{row["cost_coefficient"]:.2f}',
          f'{row["c"]:.3f}',
          _cost(record, row),
          _one_row_cost(record, row),
          f'{row["predicted"]:.1f}',
          f'{row["measured"]:.1f}',
          f'{row["speedup"]:.2f}',
          *_compiled_speedups(record, row),
      ]
      for row in record['table_2']
  ]
  return _section('Table 2 of the paper', header, rows, _TABLE_2_KEY)


def _cost(record: Record, row: Record) -> str:
  """Returns the compiled c of a row of Table 2."""
  pair = _pair_of(record, row)
  return _NONE if pair is None else compiled_cost(record, pair, '.3f')


def compiled_cost(record: Record, pair: Record, form: str) -> str:
  """Formats the cycles of a later draft step of the loop over a plain step."""
  later = pair['loop']['draft_step']
  if later is None:
    return _NONE
  step = _fastest_step(record['target'])
  return f'{later["cycles"] / step["cycles"]:{form}}'


def _one_row_cost(record: Record, row: Record) -> str:
  """Returns the cycles of a draft step over a target step, in one-row form."""
  if record['mesh']:
    return _NONE
  for draft in record['drafts']:
    if draft['name'] == f't5_1_1_{row["draft"]}':
      return _one_row_ratio(record, draft, '.3f')
  return _NONE


def _roofline_ratio(record: Record, draft: Record, form: str) -> str:
  if not draft['calls']:  # a table
    return _NONE
  seconds = lambda model: model['calls'][0]['seconds']
  return f'{seconds(draft) / seconds(record["target"]):{form}}'


def _one_row_ratio(record: Record, draft: Record, form: str) -> str:
  if not draft['steps']:  # a table
    return _NONE
  cycles = lambda model: model['steps']['one_row']['step']['cycles']
  return f'{cycles(draft) / cycles(record["target"]):{form}}'


def _fastest_step(model: Record) -> Record:
  steps = (program['step'] for program in model['steps'].values())
  return min(steps, key=lambda step: step['cycles'])


def _compiled_speedups(record: Record, row: Record) -> Iterator[str]:
  """Yields the speedups over the faster form, over one row, and over T5X."""
  pair = _pair_of(record, row)
  tokens = theory.expected_tokens(row['alpha'], row['gamma'])
  t5x = record['t5x_step']
  steps = (
      _fastest_step(record['target']),
      record['target']['steps']['one_row']['step'],
      t5x and t5x['step'],
  )
  for step in steps:
    if pair is None or step is None:
      yield _NONE
    else:
      trip = pair['loop']['step']['cycles']
      yield f'{tokens * step["cycles"] / trip:.2f}'


def _pair_of(record: Record, row: Record) -> Record | None:
  """Returns the compiled pair with the draft and gamma of a row, or None."""
  for pair in () if record['mesh'] else record['pairs']:
    is_draft = pair['draft'] == f't5_1_1_{row["draft"]}'
    if is_draft and pair['gamma'] == row['gamma']:
      return pair
  return None


def _pair_name(record: Record, pair: Record) -> str:
  return f'{record["target"]["name"]} with {pair["draft"]}'


def _microseconds(seconds: float | None) -> str:
  return _NONE if seconds is None else f'{1e6 * seconds:,.0f}'


def _section(
    title: str, header: list[str], rows: list[list[str]], key: str = ''
) -> str:
  parts = [f'## {title}', markdown.table(header, rows), key]
  return '\n\n'.join(part for part in parts if part)
