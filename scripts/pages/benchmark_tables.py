# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the records of `benchmarks`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import pathlib
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


def side_by_side() -> str:
  """Return the time of each system over plain decoding, by case.

  With the number of threads that was the better one.
  """
  cases = {
      'base': records.entry('side_by_side_base.json'),
      'Multi30k': records.entry('side_by_side_oracle.json'),
      'deep Multi30k': records.entry('side_by_side_deep.json'),
  }
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


def inside_t5x() -> str:
  """Return the speed inside T5X's eval job, over T5X's own sampler."""
  files = 'inside_t5x_gamma_4.json', 'inside_t5x_gamma_5.json'
  return markdown.table(map(_inside_t5x, map(records.entry, files)))


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


def draft_lengths() -> str:
  """Return the speedups of fixed and adaptive draft lengths, by task."""
  found = records.entries('draft_lengths.ndjson')
  parts = []
  for temperature in 0, 1:
    of_it = [x for x in found if x['temperature'] == temperature]
    parts += [f'## Temperature {temperature}', _draft_lengths(of_it)]
  return '\n\n'.join(parts)


def _draft_lengths(found: Sequence[dict[str, Any]]) -> str:
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


def earlier_answers() -> str:
  """Return what a store of earlier answers gains and costs, by task."""
  record = records.entry('earlier_answers.json')
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


_PAGES: dict[str, tuple[Callable[[], str], str, str]] = {
    'side_by_side': (
        side_by_side,
        'Beside other systems',
        'Greedy, batch 1, 3 repeats; made by `python -m benchmarks.side_by_side'
        ' --repeats=3` with `--size=base` (8 inputs), `--oracle=<folder>` (64'
        ' inputs, gamma 4) and `--multi30k=<folder> --target=<checkpoint>'
        ' --draft=<checkpoint> --gamma=5` (64 inputs). Below 1 is faster than'
        " this package's plain decoding. Records: `side_by_side_*.json`.",
    ),
    'inside_t5x': (
        inside_t5x,
        "Inside T5X's eval job",
        'Greedy, batch 1; made by `python -m benchmarks.inside_t5x'
        ' --multi30k=<folder> --target=<checkpoint> --draft=<checkpoint>'
        ' --turn=25` with `--gamma=4` and `--gamma=5`. Records:'
        ' `inside_t5x_*.json`.',
    ),
    'draft_lengths': (
        draft_lengths,
        'Draft lengths',
        'Speedup over plain decoding, all lengths interleaved, batch 1; made by'
        ' `python -m benchmarks.draft_lengths`. Records:'
        ' `draft_lengths.ndjson`.',
    ),
    'earlier_answers': (
        earlier_answers,
        'Earlier answers',
        'Greedy, batch 1, gamma 3; made by `python -m'
        ' benchmarks.earlier_answers --only_hints --gamma=3`. Record:'
        ' `earlier_answers.json`.',
    ),
}


def render() -> Iterator[tuple[pathlib.Path, str]]:
  """Yield the path and the text of each page."""
  for name, (table, title, note) in _PAGES.items():
    text = '\n\n'.join([f'# {title}', note, table()])
    yield records.RESULTS / f'{name}.md', text + '\n'
