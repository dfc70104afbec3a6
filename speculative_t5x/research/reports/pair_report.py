# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report on whether two checkpoints can be used as a pair."""

from rich import console as console_lib

from speculative_t5x.loading.compatibility import checks
from speculative_t5x.research.reports import console


def render(report: checks.Report) -> console_lib.Group:
  """Return the findings as a table, with the remarks on them below it."""
  roles = zip(('target', 'draft'), report.checkpoints, strict=True)
  rows = [
      {
          '': f.name,
          'target': f.target,
          'draft': f.draft,
          ' ': '' if f.verdict == 'ok' else f.verdict,
      }
      for f in report.findings
  ]
  remarks = [
      f'{f.verdict}: {f.name}: {f.remedy}' for f in report.findings if f.remedy
  ]
  remarks += [f'assumed: {text}' for text in report.assumptions]
  return console_lib.Group(
      *(f'{role}: {path}' for role, path in roles),
      '',
      console.table(rows, justify='left'),
      '',
      *remarks,
      '',
  )


def conclude(report: checks.Report) -> str:
  """Return whether the pair can work: the number of warnings, or an error.

  Only the first error is named; the table has all of them.
  """
  if report.errors:
    first, *more = dict.fromkeys(finding.remedy for finding in report.errors)
    rest = f' The report names {len(more)} more.' if more else ''
    return f'The pair cannot work. {first}{rest}'
  num_warnings = sum(f.verdict == 'warning' for f in report.findings)
  suffix = f'; warnings: {num_warnings}' if num_warnings else ''
  return f'The pair can work{suffix}.'
