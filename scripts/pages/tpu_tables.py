# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of tpu-preflight records, those of their reports."""

from collections.abc import Sequence
import re
from typing import Any, NamedTuple

from scripts.pages import records
from speculative_t5x.loading import models
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.research.tpu_aot import report
from speculative_t5x.speculation import theory


class _TestSet(NamedTuple):
  """The rows of a test set, and the lengths assumed of every row."""

  rows: int
  inputs_length: int
  outputs_length: int


_TEST_SETS = {
    'EnDe': _TestSet(3003, inputs_length=128, outputs_length=32),
    'CNNDM': _TestSet(11490, inputs_length=512, outputs_length=64),
}
_TIMED = 100 * 3  # rows that the paper job decodes per cell: examples, repeats
_RATES = (0.1, 1)  # of reading checkpoints, GB per second


def section(
    title: str,
    *folders: str,
    columns: Sequence[str] = (),
    rows: str = '',
) -> str:
  """Return the table in a section of reports, with the chip if several.

  Args:
    title: The section.
    *folders: The records.
    columns: The columns to show; none for all.
    rows: A regular expression for the rows to show.
  """
  found = []
  for folder in folders:
    record = records.entry(f'tpu_preflight/{folder}/tpu_preflight.json')
    chip = f'{record["topology"]}, batch {record["batch_size"]}'
    label = {'chip': chip} if len(folders) > 1 else {}
    found += [label | row for row in report.rows_of(record, title)]
  found = [x for x in found if re.search(rows, ' | '.join(x.values()))]
  return markdown.table(found, columns and [*label, *columns])


def minutes(folder: str, draft: str = '') -> str:
  """Return the minutes that a chip decodes each test set, by the compiler.

  Args:
    folder: The record.
    draft: The draft to show; all by default.
  """
  record = records.entry(f'tpu_preflight/{folder}/tpu_preflight.json')
  return markdown.table([
      _minutes(record, row, pair)
      for row, pair in report.table_2_pairs(record)
      if draft in ('', pair['draft'])
  ])


def _minutes(
    record: dict[str, Any], row: dict[str, Any], pair: dict[str, Any]
) -> markdown.Row:
  test_set = _TEST_SETS[row['task']]
  # No step is faster than reading what it reads.
  read_s = record['target']['calls'][0]['seconds']
  steps = record['target']['steps'].values()
  plain_s = max(min(step['step_s'] for step in steps), read_s)
  tokens = float(theory.expected_tokens(row['alpha'], row['gamma']))
  t5x = record['t5x_step']
  token_s = {
      'plain': plain_s,
      'speculative': max(pair['loop']['step_s'], read_s) / tokens,
      'T5X': t5x and t5x['step_s'],
  }
  encoder_s = _encoder_seconds(record, test_set.inputs_length)
  row_s = {
      way: seconds and encoder_s + test_set.outputs_length * seconds
      for way, seconds in token_s.items()
  }
  cell_s = _TIMED * sum(filter(None, row_s.values()))
  return {
      'task': row['task'],
      'draft': pair['draft'],
      'T': str(row['temperature']),
      'gamma': str(row['gamma']),
      'rows': f'{test_set.rows:,}',
      'tokens per row': str(test_set.outputs_length),
      **{
          f'{way}, ms per token': cells.number(seconds and 1e3 * seconds)
          for way, seconds in token_s.items()
      },
      **{
          f'{way}, minutes': cells.number(
              seconds and test_set.rows * seconds / 60, 0
          )
          for way, seconds in row_s.items()
      },
      'cell, minutes': cells.number(cell_s / 60, 0),
  }


def _encoder_seconds(record: dict[str, Any], inputs_length: int) -> float:
  """Return the roofline time of the target's encoder for one row."""
  size = record['target']['name'].removeprefix('t5_1_1_')
  config = t5_published.make_config(size, record['dtype'])
  without = models.count_params(config.without_encoder())
  count = models.count_params(config) - without
  chip = record['chip']
  return max(
      2 * count / chip['bandwidth'],  # bfloat16
      2 * count * inputs_length / chip['peak'],
  )


def checkpoints(*folders: str) -> str:
  """Return the sizes of published checkpoints, and the minutes to read them.

  Args:
    *folders: Records whose targets and drafts are shown.
  """
  found = {}
  for folder in folders:
    record = records.entry(f'tpu_preflight/{folder}/tpu_preflight.json')
    for model in (record['target'], *record['drafts']):
      found[model['name']] = model['num_params']
  rows = []
  for name, count in sorted(found.items(), key=lambda x: -x[1]):
    gigabytes = 4 * count / 1e9  # float32
    rows.append({
        'checkpoint': name,
        'parameters': f'{count:,}',
        'GB, float32': f'{gigabytes:.1f}',
        'GiB on the chip, bfloat16': f'{2 * count / 2**30:.2f}',
        **{
            f'minutes at {rate} GB/s': f'{gigabytes / rate / 60:.1f}'
            for rate in _RATES
        },
    })
  return markdown.table(rows)
