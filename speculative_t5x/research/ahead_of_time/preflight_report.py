# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of a preflight record, in Markdown."""

from collections.abc import Iterator
import itertools
from typing import Any

from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import markdown
from speculative_t5x.speculation import theory

Record = dict[str, Any]

_GIB = 2**30
_FORMS = {'one_row': 'one row', 'padded': 'padded to 4'}

_MEMORY_KEY = """while loading: the weights of both models, read one parameter
at a time, and what the largest merged kernel is made of."""
_STEPS_KEY = """cycles: estimated by the compiler for one step, which includes
the argmax over the vocabulary; time spent waiting for memory or for other chips
is not counted. us: the cycles at the chip's clock; the time of a step is no
less than the larger of us and roofline us. roofline us: bytes over the
published bandwidth, or operations over the peak. Weights, caches, MFLOP and
roofline count the requested positions only; a step padded to 4 computes four
positions and discards three. kernels: of a GPU; of a TPU, instructions that
take cycles. A GPU's program has no estimate of cycles."""
_LOOP_KEY = """Per step of the loop, which makes gamma draft tokens and verifies
them. kernels per draft step: of a draft token after the first. waits for the
host: transfers, and on a GPU conditions that the host reads."""
_DRAFTS_KEY = """c is the cost of a draft token over that of a plain step, as in
Table 2. roofline: from the bytes. compiled: the cycles of a later draft step of
the loop over those of the faster form of the plain step. one row: both in
one-row form. The draft's encoder is left out; drafts that share the target's
have none. -: a table and a head on the target's features have no step outside
of the loop."""
_TABLE_2_KEY = """alpha, gamma, the paper's c, EXP (expected) and EMP (measured)
are those of T5-XXL on a TPU v4, from Tables 2 and 4; other drafts stand at
those of T5-small. The speedups to their right are estimated here. roofline:
from the times of the roofline. compiled: from the cycles of the loop, relative
to the faster form of the plain step. over one row: relative to its one-row
form. over T5X's: relative to T5X's own step, if T5X is installed. Encoders are
left out, and rows with T=1 use the cycles of argmax too. -: not compiled with
this draft and gamma, or several chips, whose waiting for each other has no
cycles, or a GPU."""


def render(record: Record) -> markdown.Page:
  """Return the report."""
  parts = [_heading(record)]
  for title, (_, key) in _SECTIONS.items():
    if rows := rows_of(record, title):
      parts += [f'## {title}', markdown.Table(rows), key]
  return markdown.Page(parts, [record])


def rows_of(record: Record, title: str) -> list[markdown.Row]:
  """Return the rows of the table in a section, none if it is left out."""
  return list(_SECTIONS[title][0](record))


def _heading(record: Record) -> str:
  chip, mesh = record['chip'], record['mesh']
  hertz = chip['clock_hz']
  clock = f'{hertz / 1e6:,.0f} MHz' if hertz else 'unknown'
  # Records of before name the compiler by its version alone.
  compiler = record.get('compiler') or f'libtpu {record["libtpu"]}'
  placed = f', mesh {mesh["data"]} x {mesh["model"]}' if mesh else ''
  return (
      f'# {record["target"]["name"]} on {record["topology"]}{placed}\n\n'
      f'Compiled ahead of time by JAX {record["device"]["jax"]} and'
      f' {compiler}; nothing ran. {record["dtype"]}, batch'
      f' {record["batch_size"]}, {record["inputs_length"]} input and'
      f' {record["targets_length"]} output tokens. Per chip:'
      f' {chip["memory_bytes"] / _GIB:.0f} GiB,'
      f' {chip["bandwidth"] / 1e9:,.0f} GB/s, {chip["peak"] / 1e12:.0f}'
      f' TFLOP/s, clock {clock}.'
  )


def _memory(record: Record) -> Iterator[markdown.Row]:
  for pair in record['pairs']:
    taken = {k: x / _GIB for k, x in pair['loop']['memory'].items()}
    total = sum(taken.values())
    share = total * _GIB / record['chip']['memory_bytes']
    loading = pair.get('loading_bytes')  # records of before lack it
    yield {
        'pair': _pair_name(record, pair),
        'gamma': str(pair['gamma']),
        'arguments GiB': f'{taken["arguments"]:.2f}',
        'temporaries GiB': f'{taken["temporaries"]:.2f}',
        'code GiB': f'{taken["code"]:.2f}',
        'all GiB': f'{total:.2f}',
        'while loading GiB': cells.number(loading and loading / _GIB),
        "of the chip's": f'{100 * share:.0f}%',
        'compiled in s': f'{pair["loop"]["compile_s"]:.0f}',
    }


def _steps(record: Record) -> Iterator[markdown.Row]:
  target, t5x = record['target'], record['t5x_step']
  for role, models in (('target', [target]), ('draft', record['drafts'])):
    for model in models:
      for form, program in model['steps'].items():
        name = f'{role} {model["name"]}'
        yield _step(name, _FORMS[form], program, model['calls'][0])
  for each in record['verify']:
    form = f'verify {each["gamma"] + 1}'
    yield _step(f'target {target["name"]}', form, each['program'], each['call'])
  if t5x:
    yield _step(f"T5X's own, {target['name']}", 'one row', t5x, None)


def _step(
    name: str, form: str, program: Record, call: Record | None
) -> markdown.Row:
  scaled = lambda key, scale, decimals: (
      f'{call[key] * scale:,.{decimals}f}' if call else cells.MISSING
  )
  return {
      'step': name,
      'form': form,
      'cycles': _cycles(program['step']),
      'us': _microseconds(program['step_s']),
      'roofline us': scaled('seconds', 1e6, 0),
      'weights MB': scaled('weight_bytes', 1e-6, 1),
      'caches MB': scaled('cache_bytes', 1e-6, 1),
      'MFLOP': scaled('operations', 1e-6, 0),
      'kernels': str(program['step']['num_operations']),
  }


def _loops(record: Record) -> Iterator[markdown.Row]:
  for pair in record['pairs']:
    step, draft_step = pair['loop']['step'], pair['loop']['draft_step']
    yield {
        'loop': _pair_name(record, pair),
        'gamma': str(pair['gamma']),
        'cycles': _cycles(step),
        'us': _microseconds(pair['loop']['step_s']),
        'kernels': str(step['num_operations']),
        'kernels per draft step': (
            str(draft_step['num_operations']) if draft_step else cells.MISSING
        ),
        'waits for the host': str(step['host_transfers']),
    }


def _drafts(record: Record) -> Iterator[markdown.Row]:
  drafts = {draft['name']: draft for draft in record['drafts']}
  for pair in () if record['mesh'] else record['pairs']:
    draft = drafts[pair['draft']]
    yield {
        'draft': draft['name'],
        'parameters': f'{draft["num_params"]:,}',
        'gamma': str(pair['gamma']),
        'roofline': cells.number(_roofline_cost(record, draft), 4),
        'compiled': cells.number(_compiled_cost(record, pair), 4),
        'one row': cells.number(_one_row_cost(record, draft), 4),
    }


def _table_2(record: Record) -> Iterator[markdown.Row]:
  target, t5x = record['target'], (record['t5x_step'] or {}).get('step')
  drafts = {draft['name']: draft for draft in record['drafts']}
  printed = lambda row: f't5_1_1_{row["draft"]}'
  rows = [(row, printed(row)) for row in record['table_2']]
  rows += [  # other drafts stand at the alphas of T5-small
      (row, name)
      for name, row in itertools.product(drafts, record['table_2'])
      if name not in map(printed, record['table_2'])
      and row['draft'] == 'small'
      and _pair(record, name, row['gamma'])
  ]
  for row, name in rows:
    is_printed = name == printed(row)
    draft, pair = drafts.get(name), _pair(record, name, row['gamma'])
    c = row['c'] if is_printed else _roofline_cost(record, draft)
    # Communication has no cycles, so several chips have no compiled numbers.
    has_one_row = draft and not record['mesh']
    yield {
        'task': row['task'],
        'draft': row['draft'] if is_printed else name,
        'T': str(row['temperature']),
        'gamma': str(row['gamma']),
        'alpha': f'{row["alpha"]:.2f}',
        "the paper's c": cells.number(
            row['cost_coefficient'] if is_printed else None
        ),
        'c by roofline': cells.number(c, 3),
        'c compiled': cells.number(pair and _compiled_cost(record, pair), 3),
        'c one row': cells.number(
            _one_row_cost(record, draft) if has_one_row else None, 3
        ),
        'EXP': f'{row["predicted"]:.1f}',
        'EMP': f'{row["measured"]:.1f}',
        'roofline': cells.number(row['speedup'] if is_printed else None),
        'compiled': _speedup(row, pair, _fastest_step(target)),
        'over one row': _speedup(row, pair, target['steps']['one_row']['step']),
        "over T5X's": _speedup(row, pair, t5x),
    }


def _pair(record: Record, draft: str, gamma: int) -> Record | None:
  """Return a compiled pair; None for another, or on several chips."""
  pairs = {(x['draft'], x['gamma']): x for x in record['pairs']}
  return None if record['mesh'] else pairs.get((draft, gamma))


def _compiled_cost(record: Record, pair: Record) -> float | None:
  """Return the cycles of a later draft step of the loop over a plain step's.
  """
  return _over(pair['loop']['draft_step'], _fastest_step(record['target']))


def _roofline_cost(record: Record, draft: Record) -> float | None:
  """Return the roofline time of a draft step over a target step's."""
  if not draft['calls']:  # a table
    return None
  seconds = lambda model: model['calls'][0]['seconds']
  return seconds(draft) / seconds(record['target'])


def _one_row_cost(record: Record, draft: Record) -> float | None:
  """Return the cycles of a draft step over a target step, both of one row."""
  if not draft['steps']:  # a table
    return None
  step = lambda model: model['steps']['one_row']['step']
  return _over(step(draft), step(record['target']))


def _over(step: Record | None, other: Record) -> float | None:
  """Return the cycles of a step over another's; None where there are none."""
  return step['cycles'] / other['cycles'] if step and other['cycles'] else None


def _fastest_step(model: Record) -> Record:
  steps = (program['step'] for program in model['steps'].values())
  return min(steps, key=lambda step: step['cycles'])


def _speedup(row: Record, pair: Record | None, step: Record | None) -> str:
  """Return the speedup of a compiled pair over plain steps of some form."""
  over = pair and step and _over(step, pair['loop']['step'])
  tokens = theory.expected_tokens(row['alpha'], row['gamma'])
  return cells.number(over and float(tokens) * over)


def _pair_name(record: Record, pair: Record) -> str:
  return f'{record["target"]["name"]} with {pair["draft"]}'


def _cycles(step: Record) -> str:
  return f'{step["cycles"]:,}' if step['cycles'] else cells.MISSING


def _microseconds(seconds: float | None) -> str:
  return cells.MISSING if seconds is None else f'{1e6 * seconds:,.0f}'


# By its title, the rows of a section and how to read them.
_SECTIONS = {
    'Memory per device while the loop runs': (_memory, _MEMORY_KEY),
    'Steps': (_steps, _STEPS_KEY),
    'What the loop does': (_loops, _LOOP_KEY),
    'c of each draft': (_drafts, _DRAFTS_KEY),
    'Table 2 of the paper': (_table_2, _TABLE_2_KEY),
}
