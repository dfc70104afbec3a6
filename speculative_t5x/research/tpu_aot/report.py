# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of a tpu-preflight record, in Markdown."""

from collections.abc import Callable, Iterable
from typing import Any

from speculative_t5x.research.reports import markdown
from speculative_t5x.speculation import theory

Record = dict[str, Any]

_GIB = 2**30
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


# A column of a table: its header, and the text of its cell in each row.
_Columns = dict[str, Callable[..., str]]


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
  chip, mesh = record['chip'], record['mesh']
  hertz = chip['clock_hz']
  clock = f'{hertz / 1e6:,.0f} MHz' if hertz else 'unknown'
  placed = f', mesh {mesh["data"]} x {mesh["model"]}' if mesh else ''
  return (
      f'# {record["target"]["name"]} on {record["topology"]}{placed}\n\n'
      f'Compiled ahead of time by JAX {record["device"]["jax"]} and libtpu'
      f' {record["libtpu"]}; nothing ran. {record["dtype"]}, batch'
      f' {record["batch_size"]}, {record["inputs_length"]} input and'
      f' {record["targets_length"]} output tokens. Per chip:'
      f' {chip["memory_bytes"] / _GIB:.0f} GiB,'
      f' {chip["bandwidth"] / 1e9:,.0f} GB/s, {chip["peak"] / 1e12:.0f}'
      f' TFLOP/s, clock {clock}.'
  )


def _memory(record: Record) -> str:
  taken = lambda pair: pair['loop']['memory']
  total = lambda pair: sum(taken(pair).values())
  capacity = record['chip']['memory_bytes']
  columns: _Columns = {
      'pair': lambda pair: _pair_name(record, pair),
      'gamma': lambda pair: str(pair['gamma']),
      **{
          f'{key} GiB': lambda pair, key=key: f'{taken(pair)[key] / _GIB:.2f}'
          for key in ('arguments', 'temporaries', 'code')
      },
      'all GiB': lambda pair: f'{total(pair) / _GIB:.2f}',
      "of the chip's": lambda pair: f'{100 * total(pair) / capacity:.0f}%',
      'compiled in s': lambda pair: f'{pair["loop"]["compile_s"]:.0f}',
  }
  title = 'Memory per device while the loop runs'
  return _section(title, columns, record['pairs'])


def _steps(record: Record) -> str:
  target = record['target']
  found = [
      (f'{role} {model["name"]}', _FORMS[form], program, model['calls'][0])
      for role, models in (('target', [target]), ('draft', record['drafts']))
      for model in models
      for form, program in model['steps'].items()
  ]
  found += [
      (
          f'target {target["name"]}',
          f'verify {each["gamma"] + 1}',
          each['program'],
          each['call'],
      )
      for each in record['verify']
  ]
  if record['t5x_step']:
    name = f"T5X's own, {target['name']}"
    found.append((name, 'one row', record['t5x_step'], None))
  rows = [dict(zip(('name', 'form', 'program', 'call'), x)) for x in found]
  called = lambda key, scale, decimals: lambda row: (
      f'{row["call"][key] * scale:,.{decimals}f}' if row['call'] else _NONE
  )
  columns: _Columns = {
      'step': lambda row: row['name'],
      'form': lambda row: row['form'],
      'cycles': lambda row: f'{row["program"]["step"]["cycles"]:,}',
      'us': lambda row: _microseconds(row['program']['step_s']),
      'roofline us': called('seconds', 1e6, 0),
      'weights MB': called('weight_bytes', 1e-6, 1),
      'caches MB': called('cache_bytes', 1e-6, 1),
      'MFLOP': called('operations', 1e-6, 0),
      'products on the VPU': (
          lambda row: str(row['program']['step']['vector_products'])
      ),
      'instructions': lambda row: str(row['program']['step']['num_operations']),
  }
  return _section('Steps', columns, rows, _STEPS_KEY)


def _loops(record: Record) -> str:
  counted = {
      'host transfers': 'host_transfers',
      'all-reduces': 'all_reduces',
      'all-gathers': 'all_gathers',
      'other collectives': 'other_collectives',
      'cache MB written': 'cache_bytes_written',
      'cache MB made anew': 'cache_bytes_remade',
      'weight MB copied': 'weight_bytes_copied',
      'float32 products': 'float32_products',
      'scatter trips': 'scatter_trips',
      'passes over logits': 'vocabulary_passes',
  }

  def count(pair: Record, key: str) -> str:
    value = pair['loop']['step'][key]
    return f'{value / 1e6:.2f}' if 'bytes' in key else str(value)

  columns: _Columns = {
      'loop': lambda pair: _pair_name(record, pair),
      'gamma': lambda pair: str(pair['gamma']),
      'cycles': lambda pair: f'{pair["loop"]["step"]["cycles"]:,}',
      'us': lambda pair: _microseconds(pair['loop']['step_s']),
      **{
          name: lambda pair, key=key: count(pair, key)
          for name, key in counted.items()
      },
  }
  return _section('What the loop does', columns, record['pairs'], _LOOP_KEY)


def _row_writes(record: Record) -> str:
  if not record['row_writes']:
    return ''
  step = lambda each: each['program']['step']
  columns: _Columns = {
      'written by': lambda each: each['form'],
      'positions': lambda each: str(each['block']),
      'cycles': lambda each: f'{step(each)["cycles"]:,}',
      'trips of its loops': lambda each: str(step(each)['scatter_trips']),
  }
  title = 'Writing where each row stands elsewhere'
  key = 'In one layer of the target, with the attention that reads the cache.'
  return _section(title, columns, record['row_writes'], key)


def _drafts(record: Record) -> str:
  if record['mesh']:  # communication has no cycles
    return ''
  drafts = {draft['name']: draft for draft in record['drafts']}
  of = lambda pair: drafts[pair['draft']]
  columns: _Columns = {
      'draft': lambda pair: pair['draft'],
      'parameters': lambda pair: f'{of(pair)["num_params"]:,}',
      'gamma': lambda pair: str(pair['gamma']),
      'roofline': lambda pair: _roofline_ratio(record, of(pair)),
      'compiled': lambda pair: compiled_cost(record, pair, '.4f'),
      'one row': lambda pair: _one_row_ratio(record, of(pair), '.4f'),
  }
  return _section('c of each draft', columns, record['pairs'], _DRAFTS_KEY)


def _table_2(record: Record) -> str:
  columns: _Columns = {
      'task': lambda row: row['task'],
      'draft': lambda row: row['draft'],
      'T': lambda row: str(row['temperature']),
      'gamma': lambda row: str(row['gamma']),
      'alpha': lambda row: f'{row["alpha"]:.2f}',
      "the paper's c": lambda row: f'{row["cost_coefficient"]:.2f}',
      'c by roofline': lambda row: f'{row["c"]:.3f}',
      'c compiled': lambda row: _cost(record, row),
      'c one row': lambda row: _one_row_cost(record, row),
      'EXP': lambda row: f'{row["predicted"]:.1f}',
      'EMP': lambda row: f'{row["measured"]:.1f}',
      'roofline': lambda row: f'{row["speedup"]:.2f}',
      'compiled': lambda row: _speedup(
          record, row, _fastest_step(record['target'])
      ),
      'over one row': lambda row: _speedup(
          record, row, record['target']['steps']['one_row']['step']
      ),
      "over T5X's": lambda row: _speedup(
          record, row, (record['t5x_step'] or {}).get('step')
      ),
  }
  title = 'Table 2 of the paper'
  return _section(title, columns, record['table_2'], _TABLE_2_KEY)


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
  for draft in () if record['mesh'] else record['drafts']:
    if draft['name'] == f't5_1_1_{row["draft"]}':
      return _one_row_ratio(record, draft, '.3f')
  return _NONE


def _roofline_ratio(record: Record, draft: Record) -> str:
  if not draft['calls']:  # a table
    return _NONE
  seconds = lambda model: model['calls'][0]['seconds']
  return f'{seconds(draft) / seconds(record["target"]):.4f}'


def _one_row_ratio(record: Record, draft: Record, form: str) -> str:
  if not draft['steps']:  # a table
    return _NONE
  cycles = lambda model: model['steps']['one_row']['step']['cycles']
  return f'{cycles(draft) / cycles(record["target"]):{form}}'


def _fastest_step(model: Record) -> Record:
  steps = (program['step'] for program in model['steps'].values())
  return min(steps, key=lambda step: step['cycles'])


def _speedup(record: Record, row: Record, step: Record | None) -> str:
  """Returns the speedup of a compiled pair over plain steps of some form."""
  pair = _pair_of(record, row)
  if pair is None or step is None:
    return _NONE
  tokens = theory.expected_tokens(row['alpha'], row['gamma'])
  return f'{tokens * step["cycles"] / pair["loop"]["step"]["cycles"]:.2f}'


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
    title: str, columns: _Columns, items: Iterable[Record], key: str = ''
) -> str:
  """Returns a heading, a table with a row per item, and how to read it."""
  rows = [[cell(item) for cell in columns.values()] for item in items]
  parts = [f'## {title}', markdown.table([*columns], rows), key]
  return '\n\n'.join(part for part in parts if part)
