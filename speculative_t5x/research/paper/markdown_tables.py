# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables in Markdown, with measured values beside its own.

Legend: gamma (draft tokens per target call); c (time of a draft step over that
of a target step, Definition 3.7); T (temperature).
"""

from collections.abc import Iterable, Iterator, Sequence

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
_HEADER_2_AND_4 = (
    'task', 'draft', 'T', 'gamma', 'acceptance', 'alpha', "paper's alpha", 'c',
    "paper's c", 'EXP', "paper's EXP", 'EMP', "paper's EMP", 'verdict',
    'tokens/call', 'Eq. (1)', 'bound', 'efficiency', 'why it differs',
)  # fmt: skip
_HEADLINE_2_AND_4 = 'task', 'draft', 'T', 'EMP', "paper's EMP", 'verdict'


def table_1() -> markdown.Page:
  """Returns Table 1: the factors of Theorems 3.8 and 3.11, and the paper's."""
  header = (
      'alpha', 'gamma', 'operations', "paper's operations", 'speed',
      "paper's speed", 'agrees',
  )  # fmt: skip
  table = markdown.table(header, map(_factors, published.TABLE_1))
  return markdown.page([table])


def _factors(row: published.Factors) -> list[str]:
  operations = float(theory.operations_factor(row.alpha, row.gamma, 0))
  speed = float(theory.walltime_factor(row.alpha, row.gamma, 0))
  agrees = (cells.number(operations), cells.number(speed)) == (
      cells.number(row.operations),
      cells.number(row.speed),
  )
  return [
      f'{row.alpha:g}',
      str(row.gamma),
      cells.number(operations, 4),
      cells.number(row.operations),
      cells.number(speed, 4),
      cells.number(row.speed),
      'yes' if agrees else 'no',
  ]


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
  return [
      (
          row,
          found.get(
              (f't5_1_1_{row.draft}', row.temperature, row.gamma, row.alpha)
          ),
      )
      for row in published.TABLES_2_AND_4
  ]


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
  table = markdown.with_headline(_HEADER_2_AND_4, rows, _HEADLINE_2_AND_4)
  setups = f'{walltime_summary.setup(measured)} {_paper_setup()}'
  return markdown.page([setups, table, _NOTE], measured)


def _compare(
    row: published.Row, record: run_record.RunRecord | None
) -> list[str]:
  ours = [cells.MISSING] * 9 if record is None else _ours(record)
  alpha, cost, predicted, speedup, *rest = ours
  return [
      row.task,
      f'{row.draft} ★' if row.is_best else row.draft,
      f'{row.temperature:g}',
      str(row.gamma),
      'not run' if record is None else cells.acceptance(record),
      alpha,
      cells.number(row.alpha),
      cost,
      cells.number(row.cost_coefficient),
      predicted,
      cells.number(row.predicted, 1),
      speedup,
      cells.number(row.measured, 1),
      *rest,
      cells.MISSING if record is None else _why(row, record),
  ]


def _ours(record: run_record.RunRecord) -> list[str]:
  alpha = readings.alpha(record)
  expected = None
  if alpha is not None:
    expected = float(theory.expected_tokens(alpha, record.gamma))
  return [
      cells.number(alpha),
      cells.number(record.c, 3),
      cells.number(record.predicted_speedup),
      cells.speedup(record),
      readings.verdict(record),
      cells.number(record.tokens_per_target_call),
      cells.number(expected),
      cells.number(record.bound_speedup),
      cells.number(record.loop_efficiency),
  ]


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
  header = ('drafter', 'T', 'alpha', '95% interval', 'tokens', "paper's")
  rows = [
      [name, f'{temperature:g}', *_estimated(estimate), cells.MISSING]
      for name, temperature, estimate in points.alphas(records)
  ]
  table = markdown.table(header, [*rows, *_published_alphas()])
  return markdown.page([table], records)


def _published_alphas() -> Iterator[list[str]]:
  for row in published.TABLE_3:
    name = f'{row.task}: {row.draft}, for {row.target}'
    for temperature, alpha in (
        ('0', row.at_temperature_0), ('1', row.at_temperature_1)
    ):  # fmt: skip
      yield [name, temperature, *[cells.MISSING] * 3, cells.number(alpha)]


def _estimated(estimate: run_record.Alpha) -> list[str]:
  return [
      cells.number(estimate.value, 3),
      cells.interval(estimate.ci95, 3),
      str(estimate.num_tokens),
  ]


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
