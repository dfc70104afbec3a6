# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report of a preflight record, in Markdown."""

from collections.abc import Iterator
import itertools
from typing import Any

from speculative_t5x.research.reports import markdown
from speculative_t5x.speculation import theory

Record = dict[str, Any]

_GIB = 2**30
_FORMS = {'one_row': 'one row', 'padded': 'padded to 4'}

_STEPS_KEY = """cycles: estimated by the compiler for one step, which includes
the argmax over the vocabulary; time spent waiting for memory or for other chips
is not counted. us: the cycles at the chip's clock; the time of a step is no
less than that of reading the weights at the bandwidth above. A step padded to 4
computes four positions and discards three. kernels: of a GPU; of a TPU,
instructions that take cycles. A GPU's program has no estimate of cycles."""
_LOOP_KEY = """Per step of the loop, which makes gamma draft tokens and verifies
them. c: the cycles of a draft token after the first over those of a plain step,
as in Table 2. kernels per draft step: of such a token. waits for the host:
transfers, and on a GPU conditions that the host reads."""
_TABLE_2_KEY = """alpha, gamma, the paper's c, EXP (expected) and EMP (measured)
are those of T5-XXL on a TPU v4, from Tables 2 and 4; other drafts stand at
those of T5-small. speedup: by Equation (1), from the cycles of the loop over
those of a plain step. Encoders are left out, and rows with T=1 have the cycles
of argmax too."""


def render(record: Record) -> markdown.Page:
  """Return the report."""
  parts = [_heading(record)]
  for title, (rows_of, key) in _SECTIONS.items():
    if rows := list(rows_of(record)):
      parts += [f'## {title}', markdown.Table(rows), key]
  return markdown.Page(parts, [record])


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
    yield {
        'pair': _pair_name(record, pair),
        'gamma': str(pair['gamma']),
        'arguments GiB': f'{taken["arguments"]:.2f}',
        'temporaries GiB': f'{taken["temporaries"]:.2f}',
        'code GiB': f'{taken["code"]:.2f}',
        'all GiB': f'{total:.2f}',
        "of the chip's": f'{100 * share:.0f}%',
        'compiled in s': f'{pair["loop"]["compile_s"]:.0f}',
    }


def _steps(record: Record) -> Iterator[markdown.Row]:
  target = record['target']
  for form, program in target['steps'].items():
    yield {
        'step': f'target {target["name"]}',
        'form': _FORMS[form],
        'cycles': _cycles(program['step']),
        'us': _microseconds(program['step_s']),
        'kernels': str(program['step']['num_operations']),
    }


def _loops(record: Record) -> Iterator[markdown.Row]:
  for pair in record['pairs']:
    step, draft_step = pair['loop']['step'], pair['loop']['draft_step']
    # Communication of several chips has no cycles.
    cost = None if record['mesh'] else _over(draft_step, _plain_step(record))
    yield {
        'loop': _pair_name(record, pair),
        'gamma': str(pair['gamma']),
        'cycles': _cycles(step),
        'us': _microseconds(pair['loop']['step_s']),
        'c': markdown.number(cost, 4),
        'kernels': str(step['num_operations']),
        'kernels per draft step': markdown.count(
            draft_step and draft_step['num_operations']
        ),
        'waits for the host': str(step['host_transfers']),
    }


def _table_2(record: Record) -> Iterator[markdown.Row]:
  """Yield the paper's rows that a pair was compiled for, on one TPU chip."""
  plain = _plain_step(record)
  if record['mesh'] or not plain['cycles']:
    return
  sizes = {f't5_1_1_{row["draft"]}' for row in record['table_2']}
  for row, pair in itertools.product(record['table_2'], record['pairs']):
    name = f't5_1_1_{row["draft"]}'
    is_other = row['draft'] == 'small' and pair['draft'] not in sizes
    if pair['gamma'] != row['gamma'] or not (is_other or pair['draft'] == name):
      continue
    tokens = float(theory.expected_tokens(row['alpha'], row['gamma']))
    loop = pair['loop']
    yield {
        'task': row['task'],
        'draft': pair['draft'] if is_other else row['draft'],
        'T': str(row['temperature']),
        'gamma': str(row['gamma']),
        'alpha': f'{row["alpha"]:.2f}',
        "the paper's c": markdown.number(
            None if is_other else row['cost_coefficient']
        ),
        'c': markdown.number(_over(loop['draft_step'], plain), 3),
        'EXP': f'{row["predicted"]:.1f}',
        'EMP': f'{row["measured"]:.1f}',
        'speedup': markdown.number(tokens * _over(plain, loop['step'])),
    }


def _over(step: Record | None, other: Record) -> float | None:
  """Return the cycles of a step over another's; None where there are none."""
  return step['cycles'] / other['cycles'] if step and other['cycles'] else None


def _plain_step(record: Record) -> Record:
  """Return the target's plain step; of older records, which have two forms."""
  steps = (program['step'] for program in record['target']['steps'].values())
  return min(steps, key=lambda step: step['cycles'])


def _pair_name(record: Record, pair: Record) -> str:
  return f'{record["target"]["name"]} with {pair["draft"]}'


def _cycles(step: Record) -> str:
  return f'{step["cycles"]:,}' if step['cycles'] else markdown.MISSING


def _microseconds(seconds: float | None) -> str:
  return markdown.MISSING if seconds is None else f'{1e6 * seconds:,.0f}'


# By its title, the rows of a section and how to read them.
_SECTIONS = {
    'Memory per device while the loop runs': (_memory, ''),
    'Steps': (_steps, _STEPS_KEY),
    'What the loop does': (_loops, _LOOP_KEY),
    'Table 2 of the paper': (_table_2, _TABLE_2_KEY),
}
