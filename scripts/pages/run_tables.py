# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the jobs' run records and of trainings."""

from collections.abc import Sequence

from scripts.pages import records as records_lib
from speculative_t5x.loading import token_counts
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import eval_table
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import readings

_COLUMNS = {
    'T': lambda x: f'{x.temperature:g}',
    'gamma': lambda x: str(x.gamma),
    'alpha': lambda x: _alpha(x),
    'tokens per target call': lambda x: f'{x.tokens_per_target_call:.2f}',
    'c': lambda x: f'{x.c:.3f}',
    't1, ms': lambda x: f'{x.t1_ms:.2f}',
    'over floor': lambda x: f'{x.floor_ratio:.2f}',
    'verify/t1': lambda x: f'{x.verify_cost_ratio:.2f}',
    'interleaved': lambda x: f'{readings.interleaving_factor(x):.2f}',
    'bound': lambda x: f'{x.bound_speedup:.2f}',
    'speedup': lambda x: _bold_speedup(x),
    'efficiency': lambda x: f'{x.loop_efficiency:.2f}',
}
# The rows of the README's table: names, and files of which the best is shown.
_HIGHLIGHTS = {
    'embedded pair, 100 bulletins': 'walltime_bulletins.jsonl',
    '[Multi30k, deep target](results/multi30k/README.md), 50 sentences': (
        'multi30k/walltime.jsonl'
    ),
    'Multi30k pair, 100 sentences': 'walltime_multi30k.jsonl',
    'T5 1.1 base and small, random weights': 'simulate_base.jsonl',
    'T5 1.1 large and small, random weights': 'paper/table2.jsonl',
    'T5 1.1 XL and small, random weights': 'simulate_xl.jsonl',
}
_SWEEPS = {
    'embedded pair': 'walltime_bulletins.jsonl',
    'Multi30k pair': 'walltime_multi30k.jsonl',
    'T5 1.1 base': 'simulate_base.jsonl',
    'T5 1.1 large': 'paper/table2.jsonl',
    'T5 1.1 XL': 'simulate_xl.jsonl',
}
# The metric and the files of an embedded task: of its pair, and of each model.
_EMBEDDED = {
    'bulletins': (
        'BLEU', 'bleu', 'eval_bulletins.jsonl', 'quality_bulletins.jsonl',
    ),
    'bulletins_summary': (
        'ROUGE-Lsum', 'rougeLsum', 'eval_summary.jsonl',
        'quality_summary.jsonl',
    ),
}  # fmt: skip


def _alpha(record: run_record.RunRecord) -> str:
  value = f'{readings.alpha(record):.2f}'
  if readings.is_simulated(record):
    return f'{value}, simulated'
  return f'{value} {records_lib.interval(record.alpha.ci95)}'


def _speedup(record: run_record.RunRecord) -> str:
  return f'{record.speedup:.2f}x {records_lib.interval(record.speedup_ci95)}'


def _bold_speedup(record: run_record.RunRecord) -> str:
  interval = records_lib.interval(record.speedup_ci95)
  return f'**{record.speedup:.2f}x** {interval}'


def eval_report(name: str) -> str:
  """Returns what the eval job prints of its records, as a block of code."""
  report = eval_table.render(records_lib.runs(name))
  return f'```\n{console.to_text(report)}\n```'


def walltime(name: str, *, earlier: str | None = None) -> str:
  """Returns a table with one row per record, by temperature and gamma.

  Args:
    name: the file of the records.
    earlier: a file with the same settings, whose speedups are shown too.
  """
  records = records_lib.runs(name)
  columns = dict(_COLUMNS)
  if len({x.drafter.name for x in records}) > 1:
    columns = {'draft': lambda x: x.drafter.name.split('_')[-1]} | columns
  if earlier is not None:
    key = lambda x: (x.temperature, x.gamma)
    found = {key(x): _speedup(x) for x in records_lib.runs(earlier)}
    columns['speedup, earlier'] = lambda x: found[key(x)]
  if any(x.gamma_policy not in (None, 'fixed') for x in records):
    columns['policy'] = lambda x: f'`{x.gamma_policy}`'
  ordered = sorted(records, key=lambda x: (x.temperature, x.gamma))
  rows = [[column(x) for column in columns.values()] for x in ordered]
  return markdown.table([*columns], rows)


def highlights() -> str:
  """Returns the best speedup of each pair at its first temperature."""
  header = (
      'pair', 'parameters', 'temperature', 'gamma', 'alpha',
      'tokens per target call', 'speedup',
  )  # fmt: skip
  return markdown.table(
      header, [_highlight(*each) for each in _HIGHLIGHTS.items()]
  )


def _highlight(name: str, file: str) -> list[str]:
  records = [
      x
      for x in records_lib.runs(file, temperature=0)
      if not readings.is_simulated(x) or x.drafter.name.endswith('_small')
  ]
  record = max(records, key=lambda x: x.speedup)
  models = record.target, record.drafter
  return [
      name,
      ', '.join(readings.size(x.num_params) for x in models),
      f'{record.temperature:g}',
      str(record.gamma),
      _alpha(record),
      f'{record.tokens_per_target_call:.2f}',
      _bold_speedup(record),
  ]


def ranges() -> str:
  """Returns the ranges of the costs of the loop over the records of a file."""
  columns = {
      'interleaved': readings.interleaving_factor,
      'efficiency': lambda x: x.loop_efficiency,
      'verify/t1, gamma 3': lambda x: x.verify_cost_ratio * (x.gamma == 3),
      'verify/t1, gamma 7': lambda x: x.verify_cost_ratio * (x.gamma == 7),
  }
  rows = []
  for name, file in _SWEEPS.items():
    records = records_lib.runs(file)
    values = [filter(None, map(x, records)) for x in columns.values()]
    rows.append([name, *map(_range, values)])
  return markdown.table(['target', *columns], rows)


def _range(values: Sequence[float]) -> str:
  values = sorted(values)
  low, high = f'{values[0]:.2f}', f'{values[-1]:.2f}'
  return low if low == high else f'{low} to {high}'


def methods(temperature: float) -> str:
  """Returns the table of the methods job at a temperature, at batch 1."""
  paths = sorted((records_lib.RESULTS / 'methods').glob('*.jsonl'))
  order = 'translation', 'summaries', 'post-editing'
  paths.sort(key=lambda path: order.index(path.stem))
  found = {x.stem: records_lib.runs(f'methods/{x.name}') for x in paths}
  return methods_table.tables(found)[temperature, 1]


def embedded_pair(task: str) -> str:
  """Returns the sizes, trainings and scores of an embedded pair."""
  label, metric, pair_file, model_file = _EMBEDDED[task]
  pair = records_lib.runs(pair_file, temperature=0)[0]

  def score(model: str, split: str) -> str:
    (found,) = (
        x
        for x in records_lib.runs(model_file, split=split)
        if x.target.name.split('/')[0].endswith(model)
    )
    return f'{found.quality.baseline[metric]:.2f}'

  counts = [f'{x.num_params:,}' for x in (pair.target, pair.drafter)]
  rows = [
      ['parameters', *counts],
      *trained(f'{task}_target', f'{task}_draft'),
      [f'{label}, greedy, validation split']
      + [score(x, 'validation') for x in ('target', 'draft')],
      [f'{label}, greedy, test split']
      + [f'{pair.quality.baseline[metric]:.2f}', score('draft', 'test')],
  ]
  return markdown.table(['', 'target', 'draft model'], rows)


def multi30k_pair() -> str:
  """Returns the trainings and the score of the Multi30k target and decoder."""
  (quality,) = records_lib.runs('multi30k/quality.jsonl')
  bleu = f'{quality.quality.baseline["bleu"]:.2f}'
  rows = [
      *trained('multi30k_target', 'multi30k_decoder'),
      ['BLEU, greedy, validation split', bleu, '-'],
  ]
  return markdown.table(['', 'target', "decoder on the target's encoder"], rows)


def trained(target: str, draft: str) -> list[list[str]]:
  """Returns rows with the measures of two trainings' best checkpoints."""
  points = [records_lib.best_point(each) for each in (target, draft)]
  first, second = (each['validation'] for each in points)
  rates = [f'{second[f"acceptance_t{t}"]:.3f}' for t in (0, 1)]
  return [
      ['training steps', *(f'{each["step"]:,}' for each in points)],
      ['cross entropy, nats per token', f'{first["loss"]:.4f}', '-'],
      ['token accuracy', f'{first["accuracy"]:.4f}', '-'],
      ['acceptance rate at temperatures 0 and 1', '-', ', '.join(rates)],
  ]


def coverage() -> str:
  """Returns the share of a corpus that its most frequent tokens cover."""
  counts = token_counts.load(records_lib.RESULTS / 'token_counts')
  share = lambda n: counts.coverage(counts.most_frequent(n))
  rows = [[f'{n:,}', f'{100 * share(n):.1f}%'] for n in (256, 512, 1024)]
  return markdown.table(['most frequent tokens', 'share of the corpus'], rows)
