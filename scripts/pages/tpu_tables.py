# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of tpu-preflight records."""

from collections.abc import Mapping, Sequence

from scripts.pages import records as records_lib
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.tpu_aot import report

_GIB = 2**30


def report_table(record: records_lib.Entry, title: str) -> str:
  """Returns the table in a section of the report."""
  section = report.render(record).split(f'## {title}\n')[1].split('\n## ')[0]
  lines = [line for line in section.splitlines() if line.startswith('|')]
  return '\n'.join(lines)


def steps_table(records: Mapping[str, records_lib.Entry]) -> str:
  """Returns the cycles of a step in both forms, one row per target."""
  header = (
      'cycles per step', 'one row', 'padded to four', 'ratio',
      'roofline, in cycles',
  )  # fmt: skip
  return markdown.table(
      header,
      [
          [
              name,
              f'{one_row_cycles(record):,}',
              f'{padded_cycles(record):,}',
              f'{one_row_cycles(record) / padded_cycles(record):.1f}',
              f'{roofline_cycles(record):,.0f}',
          ]
          for name, record in records.items()
      ],
  )


def loops_table(records: Mapping[str, records_lib.Entry]) -> str:
  """Returns the counts for one trip of each loop, one column per loop."""
  steps = [loop(record).step for record in records.values()]
  rows = {
      'cycles per plain step': [
          f'{padded_cycles(record):,}' for record in records.values()
      ],
      'cycles per trip': [f'{step.cycles:,}' for step in steps],
      'products on the vector unit': [s.vector_products for s in steps],
      'trips of loops that write row by row': [
          step.scatter_trips for step in steps
      ],
      'MB of caches rewritten': [
          f'{step.cache_bytes_remade / 1e6:.1f}' for step in steps
      ],
      'MB of weights copied': [
          f'{step.weight_bytes_copied / 1e6:.1f}' for step in steps
      ],
      'transfers to the host': [step.host_transfers for step in steps],
      'float32 products': [step.float32_products for step in steps],
  }
  return markdown.table(
      ('', *records), [[k, *map(str, values)] for k, values in rows.items()]
  )


def memory_table(records: Mapping[str, Sequence[records_lib.Entry]]) -> str:
  """Returns each chip's memory for the loop with gamma 7 and T5-small.

  Args:
    records: the records of each pair, by the pair's name.
  """
  header = (
      'chip', 'pair', 'GiB per chip', 'share of memory', 'compilation, s'
  )  # fmt: skip
  return markdown.table(
      header,
      [_memory(name, each) for name in records for each in records[name]],
  )


def _memory(name: str, record: records_lib.Entry) -> list[str]:
  batch = f', batch {record.batch_size}' if record.batch_size > 1 else ''
  share = sum(loop(record).memory.values()) / record.chip.memory_bytes
  return [
      f'{record.topology}{batch}',
      name,
      f'{memory_gib(record):.2f}',
      f'{100 * share:.0f}%',
      f'{loop(record).compile_s:.0f}',
  ]


def memory_gib(record: records_lib.Entry) -> float:
  """Returns the GiB per chip of the loop with gamma 7 and T5-small."""
  return sum(loop(record).memory.values()) / _GIB


def loop(record: records_lib.Entry, draft: str = 'small') -> records_lib.Entry:
  """Returns the loop with gamma 7 and a draft of the given size."""
  return next(
      pair.loop
      for pair in record.pairs
      if pair.gamma == 7 and pair.draft.endswith(f'_{draft}')
  )


def one_row_cycles(model: records_lib.Entry) -> int:
  """Returns the cycles of a plain step of one row, of a target or a draft."""
  return model.get('target', model).steps.one_row.step.cycles


def padded_cycles(model: records_lib.Entry) -> int:
  """Returns the cycles of a padded step, of a target or a draft."""
  return model.get('target', model).steps.padded.step.cycles


def verify_cycles(record: records_lib.Entry, gamma: int) -> int:
  """Returns the cycles of the verification of a block."""
  return next(x for x in record.verify if x.gamma == gamma).program.step.cycles


def roofline_cycles(record: records_lib.Entry) -> float:
  """Returns the roofline time of a plain step, in cycles of the chip."""
  return record.target.calls[0].seconds * record.chip.clock_hz


def row_write_cycles(record: records_lib.Entry, form: str, block: int) -> int:
  """Returns the cycles to write a block to one layer's cache."""
  return next(
      each.program.step.cycles
      for each in record.row_writes
      if each.block == block and form in each.form
  )


def draft_of(record: records_lib.Entry, size: str) -> records_lib.Entry:
  """Returns the entry of a draft of the given size."""
  return next(x for x in record.drafts if x.name == f't5_1_1_{size}')


def table_2_row(
    record: records_lib.Entry, task: str, draft: str, temperature: int
) -> dict[str, str]:
  """Returns a row of the report's Table 2 as cells by column."""
  header, _, *rows = [
      [cell.strip() for cell in line.strip('|').split('|')]
      for line in report_table(record, 'Table 2 of the paper').splitlines()
  ]
  wanted = [task, draft, str(temperature)]
  return dict(zip(header, next(row for row in rows if row[:3] == wanted)))


def draft_cost(record: records_lib.Entry, draft: str, gamma: int) -> str:
  """Returns the compiled c of a draft, see `report`."""
  (pair,) = [
      pair
      for pair in record['pairs']
      if (pair['draft'], pair['gamma']) == (draft, gamma)
  ]
  return report.compiled_cost(record, pair, '.4f')
