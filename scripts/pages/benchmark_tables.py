# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the records of `benchmarks`."""

from collections.abc import Mapping

from scripts.pages import formats
from scripts.pages import records as records_lib
from speculative_t5x.research.reports import markdown

_SYSTEMS = {
    'plain, this package': 'plain',
    'plain, this package in a T5X model': 'plain_in_t5x',
    "T5X's `temperature_sample`": 't5x',
    'Hugging Face `generate`': 'transformers',
    'CTranslate2': 'ctranslate2',
    'speculative, this package': 'speculative',
    'speculative, this package in a T5X model': 'speculative_in_t5x',
    'Hugging Face assisted generation': 'transformers_assisted',
}
_PRODUCTS = {
    'as used by this package (YNNPACK for several rows)': 'product',
    'by Eigen': 'product_by_eigen',
    'kernel stored transposed, from the left': 'transposed_left',
    'kernel stored transposed, from the right': 'transposed_right',
    'kernel in panels of 64 columns': 'panels',
    'kernel as two arrays': 'halves',
    'row by row': 'row_by_row',
}
_NUM_ROWS = ('1', '2', '4', '8')


def side_by_side_table(cases: Mapping[str, records_lib.Entry]) -> str:
  """Returns the time of each system over plain decoding, by case.

  With the number of threads that was the better one, if several were tried.
  """
  header = ['time over plain decoding by this package']
  places = 'whole', 'from_encoded'
  for name in cases:
    header += [f'{name}, with encoder', f'{name}, without encoder']
  rows = [
      [name]
      + [_beside(x, place, way) for x in cases.values() for place in places]
      for name, way in _SYSTEMS.items()
  ]
  return markdown.table(header, rows)


def _beside(case: records_lib.Entry, place: str, way: str) -> str:
  timed = case[place].get(way)
  if timed is None:
    return '-'
  ratio = '1' if way == 'plain' else formats.ratio(timed.over_plain)
  if 'threads' not in case:
    return ratio
  return f'{ratio} (threads: {case.threads[way].used})'


def shared_caches_table(records: list[records_lib.Entry]) -> str:
  """Returns how much longer interleaved steps take than separate ones."""
  header = (
      'gamma', 'verification alone, ms', 'draft alone, ms',
      'extra when interleaved', 'weight reads alone, ms',
      'extra when interleaved', 'extra with an idle draft',
  )  # fmt: skip
  rows = []
  for record in records:
    ms, beyond = record.ms, record.in_turns_beyond_apart_ms
    rows.append(
        [
            str(record.gamma),
            f'{ms.verify:.2f}',
            f'{ms.drafts:.2f}',
            f'{beyond.drafts:+.2f}',
            f'{ms.read:.2f}',
            f'{beyond.read:+.2f}',
            f'{beyond.idle:+.2f}',
        ]
    )
  return markdown.table(header, rows)


def row_products_table(record: records_lib.Entry) -> str:
  """Returns the times of products by number of rows, over the read time."""
  header = ('form of the product', '1 row', *_NUM_ROWS[1:])
  row = lambda name, times: [name, *(f'{times[n]:.2f}' for n in _NUM_ROWS)]
  rows = [row(name, record.over_read[key]) for name, key in _PRODUCTS.items()]
  rows.append(row('arithmetic only', record.arithmetic_over_read))
  return markdown.table(header, rows)


def saved(record: records_lib.Entry, form: str, num_rows: str) -> float:
  """Returns the fraction of a product's time that another form saves."""
  times = record.over_read
  return 1 - times[form][num_rows] / times.product[num_rows]


def read_speeds(
    records: list[records_lib.Entry], least: int, most: int
) -> list[float]:
  """Returns the GB/s of repeated reads of matrices of least to most MiB."""
  return [
      speed
      for record in records
      for size, speed in record.read_gb_per_s.items()
      if least <= int(size) <= most
  ]


def draft_lengths_table(
    records: list[records_lib.Entry], temperature: float
) -> str:
  """Returns the speedups of fixed and adaptive draft lengths, by task."""
  found = [x for x in records if x.temperature == temperature]
  header = ['draft length']
  for record in found:
    header += [record.task, 'over best fixed', 'tokens/call']
  lengths = [key for key in found[0] if _is_length(found[0][key])]
  rows = []
  for length in lengths:
    row = [f'gamma {length}' if length.isdigit() else length.replace('_', ' ')]
    for record in found:
      each = record[length]
      is_best = str(record.best_fixed) == length
      row += [
          f'{each.speedup:.2f}x {formats.interval(each.speedup_ci95)}',
          'best' if is_best else _over_best(each),
          f'{each.tokens_per_target_call:.2f}',
      ]
    rows.append(row)
  oracle = ['oracle, by the times of the parts']
  for record in found:
    oracle += [f'{record.oracle_speedup:.2f}x', '', '']
  return markdown.table(header, [*rows, oracle])


def _is_length(value: object) -> bool:
  return isinstance(value, dict) and 'over_best_fixed' in value


def _over_best(length: records_lib.Entry) -> str:
  interval = formats.interval(length.over_best_fixed_ci95)
  return f'{length.over_best_fixed:.2f} {interval}'


def earlier_answers_table(record: records_lib.Entry) -> str:
  """Returns what a store of earlier answers gains and costs, by task."""
  header = (
      'requests', 'with an answer', 'way', 'speedup', 'tokens per target call',
  )  # fmt: skip
  ways = {
      'searched': 'search, then plain decoding',
      'lookup': 'lookup without answers',
      'answers': 'lookup in the answers found',
  }
  rows = []
  for task in ('paraphrases', 'unrelated'):
    found = record[task]
    share = formats.percent(found.share_with_answer)
    for way, name in ways.items():
      each = found[way]
      speedup = f'{each.speedup:.2f}x {formats.interval(each.speedup_ci95)}'
      tokens = f'{each.tokens_per_target_call:.2f}'
      rows.append([task, share, name, speedup, tokens])
  return markdown.table(header, rows)
