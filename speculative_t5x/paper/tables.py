# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's tables in Markdown, with what was measured beside them.

A speedup is said to be one only if its 95 percent interval lies above 1.

Legend: gamma (guesses a target call); c (time of a draft step over a target
step, Definition 3.7); T (temperature).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from speculative_t5x import analysis
from speculative_t5x.paper import published
from speculative_t5x.paper import readings
from speculative_t5x.paper import runs

Pairing = Sequence[tuple[published.Row, readings.Record | None]]
Entry = tuple[str, float, Mapping[str, Any] | None, float | None]

_MISSING = '-'
_NOTE = (
    'EXP is Theorem 3.8, EMP plain over speculative walltime with its 95%'
    ' interval. Dialled: guesses were kept at a set rate, so speed and alpha'
    ' are those of that rate; measured: the models earned it. The last column'
    " has what moves EMP most from the paper's, by 5% or more, and the factor"
    ' of each.'
)
_HEADER_2_AND_4 = (
    'task', 'draft', 'T', 'gamma', 'acceptance', 'alpha', 'paper', 'c', 'paper',
    'EXP', 'paper', 'EMP', 'paper', 'verdict', 'tokens/call', 'Eq. (1)',
    'bound', 'efficiency', 'why it differs',
)  # fmt: skip
_HEADER_SUMMARY = (
    'drafter', 'T', 'gamma', 'batch', 'acceptance', 'alpha', 'tokens/call', 'c',
    't1 ms', 't1/floor', 'verify/t1', 'in turns', 'Thm 3.8', 'bound', 'speedup',
    'verdict', 'efficiency',
)  # fmt: skip
_KEYS_SUMMARY = (
    'Keys of the record: alpha `alpha`, dialled `simulated_acceptance`;'
    ' tokens/call `tokens_per_target_call`; t1/floor `floor_ratio`; verify/t1'
    ' `verify_cost_ratio`; in turns `t_call_ms` over its parts; Thm 3.8'
    ' `predicted_speedup`; bound `bound_speedup`; speedup `speedup` with'
    ' `speedup_ci95`, of which the verdict is; efficiency `loop_efficiency`.'
)


def table_1() -> str:
  """Table 1: the factors of Theorems 3.8 and 3.11 beside the printed ones."""
  header = (
      'alpha', 'gamma', 'operations', 'paper', 'speed', 'paper', 'agrees'
  )  # fmt: skip
  return markdown(header, map(_factors, published.TABLE_1))


def _factors(row: published.Factors) -> list[str]:
  operations = float(analysis.operations_factor(row.alpha, row.gamma, 0))
  speed = float(analysis.walltime_factor(row.alpha, row.gamma, 0))
  agrees = (_number(operations), _number(speed)) == (
      _number(row.operations),
      _number(row.speed),
  )
  return [
      f'{row.alpha:g}',
      str(row.gamma),
      _number(operations, 4),
      _number(row.operations),
      _number(speed, 4),
      _number(row.speed),
      'yes' if agrees else 'no',
  ]


def tables_2_and_4(pairing: Pairing) -> str:
  """Tables 2 and 4: a line for each of the paper's twelve rows.

  Args:
    pairing: the rows of `published.TABLES_2_AND_4`, each with the record of a
      run of its gamma and temperature, or None where there is none.
  Returns:
    What it was measured on, the table, and a note on how to read it.
  Raises:
    ValueError: for a row that is missing or there twice, or a record of another
      gamma or temperature than its row's.
  """
  rows = [row for row, _ in pairing]
  if sorted(map(repr, rows)) != sorted(map(repr, published.TABLES_2_AND_4)):
    raise ValueError(
        'The pairing must have each of the twelve rows of Tables 2 and 4 once,'
        f' got {len(rows)} rows, {len(set(rows))} of them different. Pair a row'
        ' that was not run with None.'
    )
  for row, record in pairing:
    _check_pair(row, record)
  measured = [record for _, record in pairing if record is not None]
  table = markdown(_HEADER_2_AND_4, (_compare(*pair) for pair in pairing))
  return '\n\n'.join(
      [f'{_heading(measured)} {_paper_heading()}', table, _NOTE]
  )


def _check_pair(row: published.Row, record: readings.Record | None) -> None:
  if record is None:
    return
  for key, theirs in (('gamma', row.gamma), ('temperature', row.temperature)):
    if record[key] != theirs:
      raise ValueError(
          f"{row.task} {row.draft} at the paper's {key} {theirs} was paired"
          f' with a record of {key} {record[key]}. Pair it with a run of that'
          f' {key}, or with None.'
      )


def _compare(
    row: published.Row, record: readings.Record | None
) -> list[str]:
  ours = [_MISSING] * 9 if record is None else _ours(record)
  alpha, cost, predicted, speedup, *rest = ours
  return [
      row.task,
      f'{row.draft} ★' if row.is_best else row.draft,
      f'{row.temperature:g}',
      str(row.gamma),
      _acceptance(record),
      alpha,
      _number(row.alpha),
      cost,
      _number(row.cost_coefficient),
      predicted,
      _number(row.predicted, 1),
      speedup,
      _number(row.measured, 1),
      *rest,
      _MISSING if record is None else _why(row, record),
  ]


def _ours(record: readings.Record) -> list[str]:
  alpha = readings.alpha(record)
  expected = None
  if alpha is not None:
    expected = float(analysis.expected_tokens(alpha, record['gamma']))
  return [
      _number(alpha),
      _number(record['c'], 3),
      _number(record['predicted_speedup']),
      _speedup(record),
      readings.verdict(record),
      _number(record['tokens_per_target_call']),
      _number(expected),
      _number(record['bound_speedup']),
      _number(record['loop_efficiency']),
  ]


def _why(row: published.Row, record: readings.Record) -> str:
  reasons = [
      f'{effect.words} (x{effect.factor:.2f})'
      for effect in readings.reasons(row, record)
  ]
  return '; '.join(reasons) or 'nothing by 5% or more'


def table_3(entries: Iterable[Entry]) -> str:
  """Table 3: alpha by drafter.

  Args:
    entries: name of the drafter, temperature, the estimate as a record has it
      (`value`, `ci95`, `num_tokens`) or None where there is none, and the
      paper's alpha or None.
  """
  header = ('drafter', 'T', 'alpha', '95% interval', 'tokens', 'paper')
  return markdown(
      header,
      [
          [
              name,
              f'{temperature:g}',
              *([_MISSING] * 3 if estimate is None else _estimated(estimate)),
              _number(theirs),
          ]
          for name, temperature, estimate, theirs in entries
      ],
  )


def _estimated(estimate: Mapping[str, Any]) -> list[str]:
  return [
      _number(estimate['value'], 3),
      _interval(estimate['ci95'], 3),
      str(estimate['num_tokens']),
  ]


def summary(records: Sequence[readings.Record]) -> str:
  """What the records of a walltime job say, a line each, and their keys."""
  table = markdown(_HEADER_SUMMARY, map(_summarize, records))
  warnings = [
      f'- {runs.label(record)}, gamma {record["gamma"]}: {warning}.'
      for record in records
      for warning in record.get('warnings') or ()
  ]
  cut = '\n'.join(readings.cut_inputs(records))
  parts = [_heading(records), cut, table, _KEYS_SUMMARY, '\n'.join(warnings)]
  return '\n\n'.join(part for part in parts if part)


def _summarize(record: readings.Record) -> list[str]:
  if record['drafter'] is None:
    name, acceptance, verdict = 'none (plain)', _MISSING, _MISSING
  else:
    name = readings.model_name(record['drafter'])
    acceptance = _acceptance(record)
    verdict = readings.verdict(record)
  return [
      name,
      f'{record["temperature"]:g}',
      _MISSING if record['gamma'] is None else str(record['gamma']),
      str(record['batch_size']),
      acceptance,
      _number(readings.alpha(record)),
      _number(record['tokens_per_target_call']),
      _number(record['c'], 3),
      _number(record['t1_ms'], 3),
      _number(record['floor_ratio']),
      _number(record['verify_cost_ratio']),
      _number(readings.in_turns(record)),
      _number(record['predicted_speedup']),
      _number(record['bound_speedup']),
      _speedup(record),
      verdict,
      _number(record['loop_efficiency']),
  ]


def _acceptance(record: readings.Record | None) -> str:
  if record is None:
    return 'not run'
  return 'dialled' if readings.is_dialled(record) else 'measured'


def _speedup(record: readings.Record) -> str:
  if record['speedup'] is None:
    return _MISSING
  value, interval = _number(record['speedup']), record['speedup_ci95']
  return value if interval is None else f'{value} {_interval(interval)}'


def _heading(records: Sequence[readings.Record]) -> str:
  """What the records share, and all values of what they do not."""
  if not records:
    return 'Nothing was run.'
  drafters = [r['drafter'] for r in records if r['drafter'] is not None]
  models = [*(r['target'] for r in records), *drafters]
  parts = [
      _distinct(map(_hardware, records)),
      _distinct(map(_examples, records)),
      _distinct(m['dtype'] for m in models if m['dtype']),
      'batch ' + _distinct(r['batch_size'] for r in records),
      'at most ' + _distinct(map(_lengths, records)),
      'repeats ' + _distinct(r['repeats'] for r in records),
      'seed ' + _distinct(r['seed'] for r in records),
      'target ' + _distinct(_model(r['target']) for r in records),
  ]
  if drafters:
    parts.append('draft ' + _distinct(map(_model, drafters)))
  return f'Measured: {"; ".join(parts)}.'


def _paper_heading() -> str:
  drafts = ', '.join(
      f'{name} {readings.size(size)}'
      for name, size in published.DRAFT_NUM_PARAMS.items()
  )
  target = readings.size(published.TARGET_NUM_PARAMS)
  return (
      f'The paper: one {published.DEVICE}; batch {published.BATCH_SIZE}; target'
      f' T5-XXL {target}; draft {drafts}; ★ its best draft.'
  )


def _hardware(record: readings.Record) -> str:
  device, host = record['device'], record['host']
  return (
      f'{device["count"]} x {device["kind"]}, {host["cores"]} cores'
      f' ({host["cpu"]}), jax {device["jax"]}'
  )


def _examples(record: readings.Record) -> str:
  inputs = record['task'] or 'random inputs'
  return f'{inputs}, {record["num_examples"]} examples'


def _lengths(record: readings.Record) -> str:
  inputs, targets = record['inputs_length'], record['targets_length']
  return f'{inputs} input and {targets} output tokens'


def _model(model: Mapping[str, Any]) -> str:
  name, count = model['name'], model['num_params']
  if name is None or count is None:
    return readings.model_name(model)
  return f'{name} {readings.size(count)}'


def _distinct(values: Iterable[Any]) -> str:
  return ' / '.join(dict.fromkeys(map(str, values)))


def _number(value: float | None, decimals: int = 2) -> str:
  return _MISSING if value is None else f'{value:.{decimals}f}'


def _interval(interval: Sequence[float] | None, decimals: int = 2) -> str:
  if interval is None:
    return _MISSING
  low, high = (_number(bound, decimals) for bound in interval)
  return f'[{low}, {high}]'


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """A table of texts in Markdown."""
  lines = [header, ['---'] * len(header), *rows]
  return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)
