# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of tpu-preflight records, named by their folders."""

from collections.abc import Sequence
from typing import Any

from scripts.pages import records as records_lib
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.tpu_aot import report

# The rows of the table of memory: the records of each pair.
_PAIRS = {
    'XXL and small': (
        'v4_xxl', 'v4_xxl_4_chips', 'v4_xxl_batch_8', 'v5e_xxl_4_chips',
        'v5p_xxl', 'v6e_xxl',
    ),
    'XL and small': ('v4_xl',),
    'large and small': ('v4_large',),
    'base and small': ('v4_base',),
    'small and small': ('v4_small',),
}  # fmt: skip

Record = dict[str, Any]


def _read(folder: str) -> Record:
  return records_lib.entry(f'tpu_preflight/{folder}/tpu_preflight.json')


def section(folder: str, title: str) -> str:
  """Returns the table in a section of a report."""
  text = report.render(_read(folder)).split(f'## {title}\n')[1]
  lines = text.split('\n## ')[0].splitlines()
  return '\n'.join(line for line in lines if line.startswith('|'))


def steps() -> str:
  """Returns the cycles of a step in each form, one row per target."""
  header = (
      'cycles per step', "T5X's own", 'one row', 'padded to four',
      'one row over padded', 'roofline, in cycles',
  )  # fmt: skip
  rows = []
  for size in ('small', 'base', 'large', 'xl', 'xxl'):
    record = _read(f'v4_{size}')
    forms = record['target']['steps']
    one_row, padded = (
        forms[x]['step']['cycles'] for x in ('one_row', 'padded')
    )
    roofline_s = record['target']['calls'][0]['seconds']
    rows.append(
        [
            f'T5 1.1 {size if len(size) > 3 else size.upper()}',
            f'{record["t5x_step"]["step"]["cycles"]:,}',
            f'{one_row:,}',
            f'{padded:,}',
            f'{one_row / padded:.1f}',
            f'{roofline_s * record["chip"]["clock_hz"]:,.0f}',
        ]
    )
  return markdown.table(header, rows)


def loops(**folders: str) -> str:
  """Returns the counts for one trip of each loop, one column per loop."""
  found = {name: _read(folder) for name, folder in folders.items()}
  trips = [_loop(record)['step'] for record in found.values()]
  plain = [x['target']['steps']['padded']['step'] for x in found.values()]
  verify = [
      next(y['program']['step'] for y in x['verify'] if y['gamma'] == 7)
      for x in found.values()
  ]
  counts = lambda steps, key: [f'{step[key]:,}' for step in steps]
  mega = lambda key: [f'{trip[key] / 1e6:.2f}' for trip in trips]
  rows = {
      'cycles per plain step': counts(plain, 'cycles'),
      'cycles per verification': counts(verify, 'cycles'),
      'cycles per trip': counts(trips, 'cycles'),
      'products on the vector unit': counts(trips, 'vector_products'),
      'trips of loops that write row by row': counts(trips, 'scatter_trips'),
      'MB of caches written in place': mega('cache_bytes_written'),
      'MB of caches rewritten': mega('cache_bytes_remade'),
      'MB of weights copied': mega('weight_bytes_copied'),
      'transfers to the host': counts(trips, 'host_transfers'),
      'float32 products': counts(trips, 'float32_products'),
      'all-reduces': counts(trips, 'all_reduces'),
      'all-gathers': counts(trips, 'all_gathers'),
  }
  header = ['', *(name.replace('_', ' ') for name in found)]
  return markdown.table(header, [[k, *row] for k, row in rows.items()])


def row_writes(folder: str) -> str:
  """Returns the cycles to write blocks to one layer's cache, by form."""
  found = _read(folder)['row_writes']
  cycles = {
      (x['form'], x['block']): x['program']['step']['cycles'] for x in found
  }
  forms, blocks = ([*dict.fromkeys(x)] for x in zip(*cycles))
  rows = [
      [form, *(f'{cycles[form, block]:,}' for block in blocks)]
      for form in forms
  ]
  header = ['cycles to write', *(f'positions: {x}' for x in blocks)]
  return markdown.table(header, rows)


def memory() -> str:
  """Returns each chip's memory for the loop with gamma 7 and T5-small."""
  header = (
      'chip', 'pair', 'GiB per chip', 'share of memory', 'compilation, s'
  )  # fmt: skip
  rows = [
      _memory(pair, _read(folder))
      for pair, folders in _PAIRS.items()
      for folder in folders
  ]
  return markdown.table(header, rows)


def _memory(pair: str, record: Record) -> Sequence[str]:
  loop = _loop(record)
  size = record['batch_size']
  num_bytes = sum(loop['memory'].values())
  return (
      record['topology'] + (f', batch {size}' if size > 1 else ''),
      pair,
      f'{num_bytes / 2**30:.2f}',
      f'{100 * num_bytes / record["chip"]["memory_bytes"]:.0f}%',
      f'{loop["compile_s"]:.0f}',
  )


def _loop(record: Record) -> Record:
  """Returns the loop with gamma 7 and T5-small as the draft model."""
  return next(
      pair['loop']
      for pair in record['pairs']
      if pair['gamma'] == 7 and pair['draft'].endswith('_small')
  )
