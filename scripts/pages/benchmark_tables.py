# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the records of `benchmarks`, and of the compare job."""

from collections.abc import Mapping
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
_OVER_OURS = 'time over plain decoding by this package'
_WAYS = {
    'searched': 'search, then plain decoding',
    'lookup': 'lookup without answers',
    'answers': 'lookup in the answers found',
}


def side_by_side(**files: str) -> str:
  """Return the time of each system over plain decoding, by case.

  With the number of threads that was the better one.

  Args:
    **files: The record of each case, by its name.
  """
  cases = {name: records.entry(file) for name, file in files.items()}
  rows = []
  for name, way in _SYSTEMS.items():
    used = (x['threads'].get(way, {}) for x in cases.values())
    threads = ', '.join(str(x.get('used', cells.MISSING)) for x in used)
    row = {_OVER_OURS: name, 'threads': threads}
    for case, found in cases.items():
      row[f'{case}, with encoder'] = _over_plain(found['whole'], way)
      row[f'{case}, without encoder'] = _over_plain(found['from_encoded'], way)
    rows.append(row)
  return markdown.table(rows)


def _over_plain(timed: dict[str, Any], way: str) -> str:
  if way == 'plain':
    return '1'
  if not timed.get(way):
    return cells.MISSING
  return records.measured(timed[way]['over_plain'], 'ratio')


def inside_t5x(*files: str) -> str:
  """Return the speed inside T5X's eval job, over T5X's own sampler."""
  return markdown.table(
      [_inside_t5x(record) for record in map(records.entry, files)]
  )


def _inside_t5x(record: Mapping[str, Any]) -> dict[str, str]:
  return {
      'inputs': f'{record["num_inputs"]:,}',
      'gamma': str(record['gamma']),
      **{
          f'{way.replace("_", " ").replace("t5x", "T5X")}, ms per input': (
              f'{1e3 * seconds / record["num_inputs"]:.1f}'
          )
          for way, seconds in record['walltime_s'].items()
      },
      'speculative in T5X over T5X': records.measured(
          record, 'speedup_over_t5x'
      ),
      'time over this package alone': records.measured(
          record, 'time_over_own_decoder'
      ),
      'outputs that differ': str(record['outputs_that_differ']),
  }


def shared_caches(*files: str) -> str:
  """Return how much longer interleaved steps take than separate ones."""
  rows = []
  for each in map(records.entry, files):
    ms, extra = each['ms'], each['in_turns_beyond_apart_ms']
    rows.append(
        {
            'gamma': str(each['gamma']),
            'verification alone, ms': f'{ms["verify"]:.2f}',
            'draft alone, ms': f'{ms["drafts"]:.2f}',
            'extra with the draft': f'{extra["drafts"]:+.2f}',
            'weight reads alone, ms': f'{ms["read"]:.2f}',
            'extra with weight reads': f'{extra["read"]:+.2f}',
            'extra with an idle draft': f'{extra["idle"]:+.2f}',
        }
    )
  return markdown.table(rows)


def read_speeds(*files: str) -> str:
  """Return the speed of repeated reads of a matrix, by its size."""
  return markdown.table(
      {
          'MiB': f'GB/s, run {number}',
          **{k: f'{x:.0f}' for k, x in record['read_gb_per_s'].items()},
      }
      for number, record in enumerate(map(records.entry, files), start=1)
  )


def row_products(file: str) -> str:
  """Return the times of products by number of rows, over the read time."""
  record = records.entry(file)
  found = record['over_read'] | {
      'arithmetic only': record['arithmetic_over_read']
  }
  return markdown.table(
      {
          'form of the product': name.replace('_', ' '),
          **{f'rows: {rows}': f'{x:.2f}' for rows, x in times.items()},
      }
      for name, times in found.items()
  )


def draft_lengths(file: str, temperature: float) -> str:
  """Return the speedups of fixed and adaptive draft lengths, by task."""
  found = [x for x in records.entries(file) if x['temperature'] == temperature]
  has = lambda x: isinstance(x, dict) and 'over_best_fixed' in x
  rows = []
  for length in [key for key in found[0] if has(found[0][key])]:
    name = f'gamma {length}' if length.isdigit() else length.replace('_', ' ')
    row = {'draft length': name}
    for record in found:
      each, task = record[length], record['task']
      is_best = str(record['best_fixed']) == length
      over_best = records.measured(each, 'over_best_fixed')
      row[task] = records.measured(each, 'speedup')
      row[f'{task}: over best fixed'] = 'best' if is_best else over_best
      tokens = f'{each["tokens_per_target_call"]:.2f}'
      row[f'{task}: tokens/call'] = tokens
    rows.append(row)
  oracle = {x['task']: f'{x["oracle_speedup"]:.2f}' for x in found}
  name = 'oracle, by the times of the parts'
  return markdown.table([*rows, {'draft length': name, **oracle}])


def earlier_answers(file: str) -> str:
  """Return what a store of earlier answers gains and costs, by task."""
  record = records.entry(file)
  return markdown.table(
      {
          'requests': task,
          'with an answer': f'{100 * record[task]["share_with_answer"]:.0f}%',
          'way': name,
          'speedup': records.measured(record[task][way], 'speedup'),
          'tokens per target call': (
              f'{record[task][way]["tokens_per_target_call"]:.2f}'
          ),
      }
      for task in ('paraphrases', 'unrelated')
      for way, name in _WAYS.items()
  )


def recipes(file: str) -> str:
  """Return the draft's text and the acceptance rates of each recipe."""
  rows = []
  for each in records.entries(file):
    row = {
        'recipe': f'`{each["recipe"]}`',
        'seeds': str(len(each['seeds'])),
        'BLEU of the draft': cells.number(each['bleu'], 1),
    }
    for t in (0, 1):
      key, over = f'acceptance_t{t}', each.get('over_references', {})
      row[f'acceptance, T {t}'] = f'{each["mean"][key]:.3f}'
      row[f'over references, T {t}'] = _over_references(over.get(key))
    rows.append(row)
  return markdown.table(rows)


def _over_references(values: list[float] | None) -> str:
  """Format a mean difference, with its interval if it has one."""
  if values is None:
    return cells.MISSING
  mean, *bounds = values
  interval = ', '.join(f'{each:+.3f}' for each in bounds)
  return f'{mean:+.3f} [{interval}]' if bounds else f'{mean:+.3f}'


def recipe_speeds(file: str, temperature: int) -> str:
  """Return the tokens per target call and the speedup of each recipe."""
  rows = []
  for each in records.entries(file):
    row = {'recipe': f'`{each["recipe"]}`'}
    for gamma in (3, 5, 7):
      tokens = each['mean'][f'tokens_per_call_{gamma}_t{temperature}']
      row[f'tokens per target call, gamma {gamma}'] = f'{tokens:.2f}'
    (speed,) = (x for x in each['speed'] if x['temperature'] == temperature)
    speedup = records.measured(speed, 'speedup')
    rows.append(row | {f'speedup, gamma {speed["gamma"]}': speedup})
  return markdown.table(rows)


def training_throughput(file: str) -> str:
  """Return the target tokens per second of both trainers."""
  record = records.entry(file)
  ratio = records.measured(record['speculative_t5x_over_t5x'], 'ratio')
  tokens = record['target_tokens_per_second']
  return markdown.table(
      {
          '': name,
          'target tokens per second': f'{tokens[key]:.0f}',
          "over T5X's": over,
      }
      for name, key, over in (
          ("T5X's trainer", 't5x', '1'),
          ("the `train` job's steps", 'speculative_t5x', ratio),
      )
  )


def divergence(**files: str) -> str:
  """Return how many samples differ between two runs, by way of decoding."""
  rows = []
  for name, file in files.items():
    record = records.entry(file)
    sizes = [str(record[x]['batch_size']) for x in ('first', 'second')]
    rows.append(
        {
            'samples': name,
            'batches of': ' and '.join(sizes),
            'number': f'{record["rows"]:,}',
            'near ties': f'{record["near_tie"]:,}',
            'mismatches': f'{record["mismatch"]:,}',
        }
    )
  return markdown.table(rows)
