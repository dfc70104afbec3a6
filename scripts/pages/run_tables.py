# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the jobs' run records and of trainings."""

from collections.abc import Mapping, Sequence

from scripts.pages import records as records_lib
from speculative_t5x.loading import token_counts
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import eval_table
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.training import history

# Of the walltime job's table.
_COLUMNS = (
    'T', 'gamma', 'alpha', 'tokens/call', 'c', 't1 ms', 't1/floor', 'verify/t1',
    'interleaved', 'bound', 'over plain', 'efficiency',
)  # fmt: skip
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


def eval_report(name: str) -> str:
  """Return what the eval job prints of its records, as a block of code."""
  report = eval_table.render(records_lib.runs(name))
  return f'```\n{console.to_text(report)}\n```'


def walltime(name: str, *, earlier: str | None = None) -> str:
  """Return the table of the walltime job, by temperature and gamma.

  Args:
    name: The file of the records.
    earlier: A file with the same settings, whose speedups are shown too.
  """
  found = _ordered(records_lib.runs(name))
  rows = [dict(walltime_summary.row(record, found)) for record in found]
  several = len({row['drafter'] for row in rows}) > 1
  columns = ['drafter', *_COLUMNS] if several else [*_COLUMNS]
  if earlier is not None:
    columns.append('earlier speedup')
    for row, record in zip(rows, _ordered(records_lib.runs(earlier))):
      row['earlier speedup'] = cells.speedup(record)
  return markdown.table(rows, columns)


def _ordered(
    records: Sequence[run_record.RunRecord],
) -> list[run_record.RunRecord]:
  return sorted(records, key=lambda x: (x.temperature, x.gamma))


def highlights() -> str:
  """Return the best speedup of each pair at temperature 0."""
  rows = []
  for name, file in _HIGHLIGHTS.items():
    runs = records_lib.runs(file, temperature=0)
    best = max(runs, key=lambda x: x.speedup)
    models = best.target, best.drafter
    simulated = ', simulated' if readings.is_simulated(best) else ''
    rows.append(
        {
            'pair': name,
            'parameters': ', '.join(
                readings.size(x.num_params) for x in models
            ),
            'gamma': str(best.gamma),
            'alpha': cells.number(readings.alpha(best)) + simulated,
            'tokens per target call': cells.number(best.tokens_per_target_call),
            'speedup': f'**{cells.speedup(best)}**',
        }
    )
  return markdown.table(rows)


def methods(temperature: float) -> str:
  """Return the table of the methods job at a temperature, at batch 1."""
  tasks = 'translation', 'summaries', 'post-editing'
  found = {x: records_lib.runs(f'methods/{x}.jsonl') for x in tasks}
  return methods_table.tables(found)[temperature, 1]


def embedded_pair(task: str) -> str:
  """Return the sizes, trainings and score of an embedded pair."""
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
  validation = [score(x, 'validation') for x in ('target', 'draft')]
  test = f'{pair.quality.baseline[metric]:.2f}', score('draft', 'test')
  return _of_two_models(
      'draft model',
      {
          'parameters': counts,
          **trained(f'{task}_target', f'{task}_draft'),
          f'{label}, greedy, validation split': validation,
          f'{label}, greedy, test split': test,
      },
  )


def _of_two_models(draft: str, values: Mapping[str, Sequence[str]]) -> str:
  """Return a table of values of a target and of what drafts for it."""
  rows = [{'': key, 'target': x, draft: y} for key, (x, y) in values.items()]
  return markdown.table(rows)


def multi30k_pair() -> str:
  """Return the trainings and the score of the Multi30k target and decoder."""
  (quality,) = records_lib.runs('multi30k/quality.jsonl')
  bleu = f'{quality.quality.baseline["bleu"]:.2f}'
  return _of_two_models(
      "decoder on the target's encoder",
      {
          **trained('multi30k_target', 'multi30k_decoder'),
          'BLEU, greedy, validation split': (bleu, '-'),
      },
  )


def trained(target: str, draft: str) -> dict[str, Sequence[str]]:
  """Return the measures of two trainings' best checkpoints."""
  points = [
      max(
          records_lib.entry(f'training/{each}/{history.FILE_NAME}'),
          key=lambda point: point['score'],
      )
      for each in (target, draft)
  ]
  first, second = (each['validation'] for each in points)
  rates = [f'{second[f"acceptance_t{t}"]:.3f}' for t in (0, 1)]
  return {
      'training steps': [f'{each["step"]:,}' for each in points],
      'cross entropy, nats per token': (f'{first["loss"]:.4f}', '-'),
      'token accuracy': (f'{first["accuracy"]:.4f}', '-'),
      'acceptance rate at temperatures 0 and 1': ('-', ', '.join(rates)),
  }


def coverage() -> str:
  """Return the share of a corpus that its most frequent tokens cover."""
  counts = token_counts.load(records_lib.RESULTS / 'token_counts')
  share = lambda n: counts.coverage(counts.most_frequent(n))
  return markdown.table(
      {
          'most frequent tokens': f'{n:,}',
          'share of the corpus': f'{100 * share(n):.1f}%',
      }
      for n in (256, 512, 1024)
  )
