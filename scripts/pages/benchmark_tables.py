# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of what `benchmarks` measured."""

from scripts.pages import formats
from scripts.pages import records as records_lib
from speculative_t5x.paper import tables

_SYSTEMS = {
    'plain, this package in a T5X model': 'plain_in_t5x',
    "T5X's `temperature_sample`": 't5x',
    'Hugging Face `generate`': 'transformers',
    'CTranslate2': 'ctranslate2',
    'speculative, this package': 'speculative',
    'speculative, this package in a T5X model': 'speculative_in_t5x',
    'Hugging Face assisted generation': 'transformers_assisted',
}
_PRODUCTS = {
    'as it is used (YNNPACK beyond one row)': 'product',
    'by Eigen': 'product_by_eigen',
    'kernel stored transposed, from the left': 'transposed_left',
    'kernel stored transposed, from the right': 'transposed_right',
    'kernel in panels of 64 columns': 'panels',
    'kernel as two arrays': 'halves',
    'one row after another': 'row_by_row',
}
_NUM_ROWS = ('1', '2', '4', '8')


def side_by_side_table(
    base: records_lib.Entry, multi30k: records_lib.Entry
) -> str:
  """Returns the time of each system over plain decoding, in both cases."""
  header = (
      'time over plain decoding here', 'base, whole', 'base, from encoded',
      'Multi30k, whole', 'Multi30k, from encoded',
  )  # fmt: skip
  parts = [
      case[part]
      for case in (base, multi30k)
      for part in ('whole', 'from_encoded')
  ]
  rows = [['plain, this package', *(['1'] * len(parts))]]
  for name, system in _SYSTEMS.items():
    timed = (part.get(system) for part in parts)
    rows.append([name, *(formats.ratio(x and x.over_plain) for x in timed)])
  return tables.markdown(header, rows)


def shared_caches_table(records: list[records_lib.Entry]) -> str:
  """Returns how much longer interleaved steps take than separate ones."""
  header = (
      'gamma', 'verifying alone, ms', 'draft alone, ms',
      'in turns beyond both', 'reading alone, ms', 'beyond both',
      'idle draft, beyond both',
  )  # fmt: skip
  rows = []
  for record in records:
    ms, beyond = record.ms, record.in_turns_beyond_apart_ms
    rows.append([
        str(record.gamma),
        f'{ms.verify:.2f}',
        f'{ms.drafts:.2f}',
        f'{beyond.drafts:+.2f}',
        f'{ms.read:.2f}',
        f'{beyond.read:+.2f}',
        f'{beyond.idle:+.2f}',
    ])
  return tables.markdown(header, rows)


def row_products_table(record: records_lib.Entry) -> str:
  """Returns the time of products of several rows over that of reading."""
  header = ('form of the product', '1 row', *_NUM_ROWS[1:])
  row = lambda name, times: [name, *(f'{times[n]:.2f}' for n in _NUM_ROWS)]
  rows = [row(name, record.over_read[key]) for name, key in _PRODUCTS.items()]
  rows.append(row('arithmetic alone', record.arithmetic_over_read))
  return tables.markdown(header, rows)


def saved(record: records_lib.Entry, form: str, num_rows: str) -> float:
  """Returns what share of a product's time another form of it saves."""
  times = record.over_read
  return 1 - times[form][num_rows] / times.product[num_rows]


def read_speeds(
    records: list[records_lib.Entry], least: int, most: int
) -> list[float]:
  """Returns the GB/s of reading matrices of such sizes in MB repeatedly."""
  return [
      speed
      for record in records
      for size, speed in record.read_gb_per_s.items()
      if least <= int(size) <= most
  ]
