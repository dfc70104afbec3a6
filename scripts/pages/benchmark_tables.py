# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the records of `benchmarks`, and of the compare job."""

from typing import Any

from scripts.pages import records
from speculative_t5x.research.reports import cells
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
_WAYS = {
    'searched': 'search, then plain decoding',
    'lookup': 'lookup without answers',
    'answers': 'lookup in the answers found',
}


def side_by_side(**files: str) -> str:
  """Returns the time of each system over plain decoding, by case.

  With the number of threads that was the better one.

  Args:
    **files: the record of each case, by its name.
  """
  cases = {name: records.entry(file) for name, file in files.items()}
  header = ['time over plain decoding by this package', 'threads']
  for name in cases:
    header += [f'{name}, with encoder', f'{name}, without encoder']
  rows = []
  for name, way in _SYSTEMS.items():
    used = (x['threads'].get(way, {}) for x in cases.values())
    row = [name, ', '.join(str(x.get('used', cells.MISSING)) for x in used)]
    for case in cases.values():
      row += [_over_plain(case[x], way) for x in ('whole', 'from_encoded')]
    rows.append(row)
  return markdown.table(header, rows)


def _over_plain(timed: dict[str, Any], way: str) -> str:
  if way == 'plain':
    return '1'
  if not timed.get(way):
    return cells.MISSING
  return records.measured(timed[way]['over_plain'], 'ratio')


def shared_caches(*files: str) -> str:
  """Returns how much longer interleaved steps take than separate ones."""
  header = (
      'gamma', 'verification alone, ms', 'draft alone, ms',
      'extra when interleaved', 'weight reads alone, ms',
      'extra when interleaved', 'extra with an idle draft',
  )  # fmt: skip
  rows = []
  for each in map(records.entry, files):
    ms, extra = each['ms'], each['in_turns_beyond_apart_ms']
    row = [str(each['gamma']), f'{ms["verify"]:.2f}']
    for name in ('drafts', 'read'):
      row += [f'{ms[name]:.2f}', f'{extra[name]:+.2f}']
    rows.append([*row, f'{extra["idle"]:+.2f}'])
  return markdown.table(header, rows)


def read_speeds(*files: str) -> str:
  """Returns the speed of repeated reads of a matrix, by its size."""
  found = [records.entry(file)['read_gb_per_s'] for file in files]
  rows = [
      [f'GB/s, run {number}', *(f'{speed:.0f}' for speed in each.values())]
      for number, each in enumerate(found, start=1)
  ]
  return markdown.table(['MiB', *found[0]], rows)


def row_products(file: str) -> str:
  """Returns the times of products by number of rows, over the read time."""
  record = records.entry(file)
  found = record['over_read'] | {
      'arithmetic only': record['arithmetic_over_read']
  }
  rows = [
      [name.replace('_', ' '), *(f'{x:.2f}' for x in times.values())]
      for name, times in found.items()
  ]
  return markdown.table(('form of the product', '1 row', '2', '4', '8'), rows)


def draft_lengths(file: str, temperature: float) -> str:
  """Returns the speedups of fixed and adaptive draft lengths, by task."""
  found = [x for x in records.entries(file) if x['temperature'] == temperature]
  header = ['draft length']
  for record in found:
    header += [record['task'], 'over best fixed', 'tokens/call']
  has = lambda x: isinstance(x, dict) and 'over_best_fixed' in x
  rows = []
  for length in [key for key in found[0] if has(found[0][key])]:
    row = [f'gamma {length}' if length.isdigit() else length.replace('_', ' ')]
    for record in found:
      each = record[length]
      is_best = str(record['best_fixed']) == length
      row += [
          records.measured(each, 'speedup'),
          'best' if is_best else records.measured(each, 'over_best_fixed'),
          f'{each["tokens_per_target_call"]:.2f}',
      ]
    rows.append(row)
  oracle = ['oracle, by the times of the parts']
  for record in found:
    oracle += [f'{record["oracle_speedup"]:.2f}', '', '']
  return markdown.table(header, [*rows, oracle])


def earlier_answers(file: str) -> str:
  """Returns what a store of earlier answers gains and costs, by task."""
  header = (
      'requests', 'with an answer', 'way', 'speedup', 'tokens per target call',
  )  # fmt: skip
  record = records.entry(file)
  rows = []
  for task in ('paraphrases', 'unrelated'):
    found = record[task]
    share = f'{100 * found["share_with_answer"]:.0f}%'
    for way, name in _WAYS.items():
      speedup = records.measured(found[way], 'speedup')
      tokens = f'{found[way]["tokens_per_target_call"]:.2f}'
      rows.append([task, share, name, speedup, tokens])
  return markdown.table(header, rows)


def recipes(file: str) -> str:
  """Returns the draft's text and the acceptance rates of each recipe."""
  header = ['recipe', 'seeds', 'BLEU of the draft']
  for t in (0, 1):
    header += [f'acceptance, T {t}', 'over references']
  rows = []
  for each in records.entries(file):
    bleu = '-' if each['bleu'] is None else f'{each["bleu"]:.1f}'
    row = [f'`{each["recipe"]}`', str(len(each['seeds'])), bleu]
    for t in (0, 1):
      key = f'acceptance_t{t}'
      row.append(f'{each["mean"][key]:.3f}')
      row.append(_over_references(each.get('over_references', {}).get(key)))
    rows.append(row)
  return markdown.table(header, rows)


def _over_references(values: list[float] | None) -> str:
  """Formats a mean difference, with its interval if it has one."""
  if values is None:
    return '-'
  mean, *bounds = values
  interval = ', '.join(f'{each:+.3f}' for each in bounds)
  return f'{mean:+.3f} [{interval}]' if bounds else f'{mean:+.3f}'


def recipe_speeds(file: str, temperature: int) -> str:
  """Returns the tokens per target call and the speedup of each recipe."""
  found = records.entries(file)
  gammas = 3, 5, 7
  header = ['recipe', *(f'tokens per target call, gamma {x}' for x in gammas)]
  rows = []
  for each in found:
    keys = [f'tokens_per_call_{x}_t{temperature}' for x in gammas]
    (speed,) = (x for x in each['speed'] if x['temperature'] == temperature)
    tokens = [f'{each["mean"][key]:.2f}' for key in keys]
    speedup = records.measured(speed, 'speedup')
    rows.append([f'`{each["recipe"]}`', *tokens, speedup])
  header.append(f'speedup, gamma {found[0]["speed"][0]["gamma"]}')
  return markdown.table(header, rows)


def training_throughput(file: str) -> str:
  """Returns the target tokens per second of both trainers."""
  record = records.entry(file)
  tokens = record['target_tokens_per_second']
  rows = [
      ["T5X's trainer", f'{tokens["t5x"]:.0f}', '1'],
      [
          "the `train` job's steps",
          f'{tokens["speculative_t5x"]:.0f}',
          records.measured(record['speculative_t5x_over_t5x'], 'ratio'),
      ],
  ]
  return markdown.table(['', 'target tokens per second', "over T5X's"], rows)


def divergence(**files: str) -> str:
  """Returns how many samples differ between two runs, by way of decoding."""
  header = ('samples', 'batches of', 'number', 'near ties', 'mismatches')
  rows = []
  for name, file in files.items():
    record = records.entry(file)
    sizes = [str(record[x]['batch_size']) for x in ('first', 'second')]
    counts = [f'{record[x]:,}' for x in ('rows', 'near_tie', 'mismatch')]
    rows.append([name, ' and '.join(sizes), *counts])
  return markdown.table(header, rows)
