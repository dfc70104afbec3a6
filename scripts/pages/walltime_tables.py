# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of walltime, simulate and eval records."""

from collections.abc import Mapping

from scripts.pages import formats
from scripts.pages import records as records_lib
from speculative_t5x.research import run_record
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import eval_table
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import methods_table as methods_lib
from speculative_t5x.research.reports import readings

_COLUMNS = {
    'T': lambda record: f'{record.temperature:g}',
    'gamma': lambda record: str(record.gamma),
    'alpha': lambda record: f'{readings.alpha(record):.2f}',
    'tokens per target call': lambda record: (
        f'{record.tokens_per_target_call:.2f}'
    ),
    'c': lambda record: f'{record.c:.3f}',
    't1, ms': lambda record: f'{record.t1_ms:.2f}',
    'over floor': lambda record: f'{record.floor_ratio:.2f}',
    'verify/t1': lambda record: f'{record.verify_cost_ratio:.2f}',
    'interleaved': lambda record: f'{readings.interleaving_factor(record):.2f}',
    'bound': lambda record: f'{record.bound_speedup:.2f}',
    'speedup': lambda record: _bold_speedup(record),
    'efficiency': lambda record: f'{record.loop_efficiency:.2f}',
}


def eval_report(records: records_lib.Records) -> str:
  """Returns what the eval job prints of its records, as a block of code."""
  return f'```\n{console.to_text(eval_table.render(records))}\n```'


def walltime_table(
    records: records_lib.Records, with_draft: bool = False
) -> str:
  """Returns a table with one row per record, by temperature and gamma."""
  columns = ({'draft': _draft_size} if with_draft else {}) | _COLUMNS
  ordered = sorted(records, key=lambda x: (x.temperature, x.gamma))
  rows = [[column(x) for column in columns.values()] for x in ordered]
  return markdown.table([*columns], rows)


def _draft_size(record: run_record.RunRecord) -> str:
  return record.drafter.name.split('_')[-1]


def methods_table(
    tasks: Mapping[str, records_lib.Records], temperature: float
) -> str:
  """Returns the table of the methods job at a temperature, at batch 1."""
  return methods_lib.tables(tasks)[temperature, 1]


def highlights(rows: Mapping[str, run_record.RunRecord]) -> str:
  """Returns a table of settings and speedup, one row per record.

  Args:
    rows: records by the name of the pair.
  """
  header = (
      'pair', 'parameters', 'temperature', 'gamma', 'alpha',
      'tokens per target call', 'speedup',
  )  # fmt: skip
  return markdown.table(header, [_highlight(*row) for row in rows.items()])


def _highlight(name: str, record: run_record.RunRecord) -> list[str]:
  alpha = f'{readings.alpha(record):.2f}'
  return [
      name,
      f'{readings.size(record.target.num_params)},'
      f' {readings.size(record.drafter.num_params)}',
      f'{record.temperature:g}',
      str(record.gamma),
      f'{alpha}, simulated' if readings.is_simulated(record) else alpha,
      f'{record.tokens_per_target_call:.2f}',
      _bold_speedup(record),
  ]


def _bold_speedup(record: run_record.RunRecord) -> str:
  value = formats.speedup(record)
  return f'**{value}** {formats.interval(record.speedup_ci95)}'


def best(records: records_lib.Records) -> run_record.RunRecord:
  """Returns the record with the largest speedup."""
  return max(records, key=lambda record: record.speedup)


def speedup_per_token(record: run_record.RunRecord) -> float:
  """Returns the speedup per token, if the two outputs differ in length."""
  return record.speedup * (1 - fewer_tokens(record))


def fewer_tokens(record: run_record.RunRecord) -> float:
  """Returns the fraction by which the speculative outputs are shorter."""
  return 1 - record.speculative.tokens / record.baseline.tokens


def changes(
    records: records_lib.Records, earlier: records_lib.Records
) -> list[float]:
  """Returns the relative difference of each speedup from an earlier run's."""
  key = lambda record: (record.target.name, record.temperature, record.gamma)
  before = {key(record): record.speedup for record in earlier}
  return [abs(x.speedup / before[key(x)] - 1) for x in records]


def outcome(record: run_record.RunRecord) -> str:
  """Returns the speedup if its interval excludes 1, else the verdict."""
  verdict = readings.verdict(record)
  if verdict in ('faster', 'slower'):
    return formats.speedup_and_interval(record)
  return verdict


def costs_over_the_papers(records: records_lib.Records) -> list[float]:
  """Returns each record's c over the paper's c for the same draft size."""
  costs = {x.draft: x.cost_coefficient for x in published.TABLES_2_AND_4}
  return [x.c / costs[x.drafter.name.split('_')[-1]] for x in records]


def num_warned(records: records_lib.Records, words: str) -> int:
  """Returns the number of records that have a warning with these words."""
  return sum(any(words in text for text in x.warnings) for x in records)
