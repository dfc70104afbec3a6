# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables in Markdown, with measured values beside its own.

Legend: gamma (draft tokens per target call); c (time of a draft step over that
of a target step, Definition 3.7); T (temperature).
"""

import collections
from collections.abc import Iterable, Sequence

from speculative_t5x.research import run_record
from speculative_t5x.research.paper import differences
from speculative_t5x.research.paper import points
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import theory

Pairing = Sequence[tuple[published.Row, run_record.RunRecord | None]]

_NOTE = (
    'EXP is Theorem 3.8, EMP plain over speculative walltime with its 95%'
    ' interval. Acceptance is simulated if draft tokens were accepted at a'
    ' given rate, which is alpha, and measured if the models decided. The last'
    " column has the largest causes of the difference from the paper's EMP, of"
    ' 5% or more, each with its factor.'
)
_HEADLINE_2_AND_4 = 'task', 'draft', 'T', 'EMP', "paper's EMP", 'verdict'


def table_1() -> markdown.Page:
  """Returns Table 1: the factors of Theorems 3.8 and 3.11, and the paper's."""
  return markdown.page([markdown.table(map(_factors, published.TABLE_1))])


def _factors(row: published.Factors) -> markdown.Row:
  operations = float(theory.operations_factor(row.alpha, row.gamma, 0))
  speed = float(theory.walltime_factor(row.alpha, row.gamma, 0))
  ours, paper = (operations, speed), (row.operations, row.speed)
  agrees = [*map(cells.number, ours)] == [*map(cells.number, paper)]
  return {
      'alpha': f'{row.alpha:g}',
      'gamma': str(row.gamma),
      'operations': cells.number(operations, 4),
      "paper's operations": cells.number(row.operations),
      'speed': cells.number(speed, 4),
      "paper's speed": cells.number(row.speed),
      'agrees': 'yes' if agrees else 'no',
  }


def pair_simulated(records: Iterable[run_record.RunRecord]) -> Pairing:
  """Pairs each row of Tables 2 and 4 with its run of simulated acceptance.

  Args:
    records: records of T5 1.1 with simulated acceptance.
  Returns:
    The rows, each with the record of its draft model, temperature, gamma and
    alpha, or None.
  """
  found = {
      (x.drafter.name, x.temperature, x.gamma, x.simulated_acceptance): x
      for x in records
  }
  key = lambda row: (
      f't5_1_1_{row.draft}', row.temperature, row.gamma, row.alpha
  )  # fmt: skip
  return [(row, found.get(key(row))) for row in published.TABLES_2_AND_4]


def tables_2_and_4(pairing: Pairing) -> markdown.Page:
  """Returns Tables 2 and 4, with one line per row of the paper.

  Args:
    pairing: the rows of `published.TABLES_2_AND_4`, each with the record of a
      run with its gamma and temperature, or None if there is no such run.
  Returns:
    The setup of the runs, a table of the speedups, one of everything, and a
    note on how to read it.
  """
  measured = [record for _, record in pairing if record is not None]
  rows = [_compare(*pair) for pair in pairing]
  table = markdown.with_headline(rows, _HEADLINE_2_AND_4)
  setups = f'{walltime_summary.setup(measured)} {_paper_setup()}'
  return markdown.page([setups, table, _NOTE], measured)


def _compare(
    row: published.Row, record: run_record.RunRecord | None
) -> markdown.Row:
  ours = collections.defaultdict(lambda: cells.MISSING)
  if record is not None:
    ours.update(_ours(row, record))
  return {
      'task': row.task,
      'draft': f'{row.draft} ★' if row.is_best else row.draft,
      'T': f'{row.temperature:g}',
      'gamma': str(row.gamma),
      'acceptance': 'not run' if record is None else cells.acceptance(record),
      'alpha': ours['alpha'],
      "paper's alpha": cells.number(row.alpha),
      'c': ours['c'],
      "paper's c": cells.number(row.cost_coefficient),
      'EXP': ours['Thm 3.8'],
      "paper's EXP": cells.number(row.predicted, 1),
      'EMP': ours['speedup'],
      "paper's EMP": cells.number(row.measured, 1),
      'verdict': ours['verdict'],
      'tokens/call': ours['tokens/call'],
      'Eq. (1)': ours['Eq. (1)'],
      'bound': ours['bound'],
      'efficiency': ours['efficiency'],
      'why it differs': ours['why'],
  }


def _ours(row: published.Row, record: run_record.RunRecord) -> markdown.Row:
  alpha = readings.alpha(record)
  expected = None
  if alpha is not None:
    expected = float(theory.expected_tokens(alpha, record.gamma))
  return {
      **walltime_summary.row(record),
      'Eq. (1)': cells.number(expected),
      'why': _why(row, record),
  }


def _why(row: published.Row, record: run_record.RunRecord) -> str:
  reasons = [
      f'{effect.words} (x{effect.factor:.2f})'
      for effect in differences.reasons(row, record)
  ]
  return '; '.join(reasons) or 'nothing by 5% or more'


def table_3(records: Sequence[run_record.RunRecord]) -> markdown.Page:
  """Returns Table 3: measured alphas, then the paper's.

  Args:
    records: records of any job; see `points.alphas`.
  """
  rows = [
      {
          'drafter': name,
          'T': f'{temperature:g}',
          'alpha': cells.number(estimate.value, 3),
          '95% interval': cells.interval(estimate.ci95, 3),
          'tokens': str(estimate.num_tokens),
          "paper's": cells.MISSING,
      }
      for name, temperature, estimate in points.alphas(records)
  ]
  rows += [
      {
          'drafter': f'{row.task}: {row.draft}, for {row.target}',
          'T': str(temperature),
          "paper's": cells.number(alpha),
      }
      for row in published.TABLE_3
      for temperature, alpha in enumerate(
          (row.at_temperature_0, row.at_temperature_1)
      )
  ]
  return markdown.page([markdown.table(rows)], records)


def _paper_setup() -> str:
  drafts = ', '.join(
      f'{name} {readings.size(size)}'
      for name, size in published.DRAFT_NUM_PARAMS.items()
  )
  target = readings.size(published.TARGET_NUM_PARAMS)
  return (
      f'The paper: one {published.DEVICE}; batch {published.BATCH_SIZE}; target'
      f' T5-XXL {target}; draft {drafts}; ★ its best draft.'
  )
