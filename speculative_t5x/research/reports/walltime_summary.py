# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The summary of a walltime or simulate job, in Markdown.

Legend: c (time of a draft step over that of a target step, Definition 3.7);
T (temperature).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from speculative_t5x.research import run_record
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs

_HEADER = (
    'drafter', 'T', 'gamma', 'batch', 'acceptance', 'alpha', 'tokens/call', 'c',
    't1 ms', 't1/floor', 'verify/t1', 'interleaved', 'Thm 3.8', 'bound',
    'speedup', 'verdict', 'efficiency',
)  # fmt: skip
_HEADLINE = 'drafter', 'T', 'gamma', 'tokens/call', 'speedup', 'verdict'
_KEYS = (
    'Keys of the record: alpha `alpha`, simulated `simulated_acceptance`;'
    ' tokens/call `tokens_per_target_call`; t1/floor `floor_ratio`; verify/t1'
    ' `verify_cost_ratio`; interleaved `t_call_ms` over the sum of its parts;'
    ' Thm 3.8 `predicted_speedup`; bound `bound_speedup`; speedup `speedup`'
    ' with `speedup_ci95`, which decides the verdict; efficiency'
    ' `loop_efficiency`.'
)


def render(records: Sequence[run_record.RunRecord]) -> markdown.Page:
  """Returns tables with one line per record, and notes on how to read them."""
  table = markdown.with_headline(
      _HEADER, map(_summarize, records), _HEADLINE
  )
  warnings = [
      f'- {runs.label(record)}, gamma {record.gamma}: {warning}.'
      for record in records
      for warning in record.warnings or ()
  ]
  truncated = '\n'.join(readings.input_notes(records))
  parts = [setup(records), truncated, table, _KEYS, '\n'.join(warnings)]
  return markdown.page(parts, records)


def _summarize(record: run_record.RunRecord) -> list[str]:
  if record.drafter is None:
    name, acceptance, verdict = 'none (plain)', cells.MISSING, cells.MISSING
  else:
    name = readings.method(record)
    acceptance = cells.acceptance(record)
    verdict = readings.verdict(record)
  return [
      name,
      f'{record.temperature:g}',
      cells.MISSING if record.gamma is None else str(record.gamma),
      str(record.batch_size),
      acceptance,
      cells.number(readings.alpha(record)),
      cells.number(record.tokens_per_target_call),
      cells.number(record.c, 3),
      cells.number(record.t1_ms, 3),
      cells.number(record.floor_ratio),
      cells.number(record.verify_cost_ratio),
      cells.number(readings.interleaving_factor(record)),
      cells.number(record.predicted_speedup),
      cells.number(record.bound_speedup),
      cells.speedup(record),
      verdict,
      cells.number(record.loop_efficiency),
  ]


def setup(records: Sequence[run_record.RunRecord]) -> str:
  """Returns a sentence on what was measured, with every value that occurs."""
  if not records:
    return 'Nothing was run.'
  drafters = [r.drafter for r in records if r.drafter is not None]
  models = [*(r.target for r in records), *drafters]
  parts = [
      _distinct(map(_hardware, records)),
      _distinct(map(_examples, records)),
      _distinct(m.dtype for m in models if m.dtype),
      'batch ' + _distinct(r.batch_size for r in records),
      'at most ' + _distinct(map(_lengths, records)),
      'repeats ' + _distinct(r.repeats for r in records),
      'seed ' + _distinct(r.seed for r in records),
      'target ' + _distinct(_model(r.target) for r in records),
  ]
  if drafters:
    parts.append('draft ' + _distinct(map(_model, drafters)))
  return f'Measured: {"; ".join(parts)}.'


def _hardware(record: run_record.RunRecord) -> str:
  device, host = record.device, record.host
  return (
      f'{device.count} x {device.kind}, {host.cores} cores'
      f' ({host.cpu}), jax {device.jax}'
  )


def _examples(record: run_record.RunRecord) -> str:
  given = 'random inputs' if readings.is_simulated(record) else 'given texts'
  inputs = record.task or given
  return f'{inputs}, {record.num_examples} examples'


def _lengths(record: run_record.RunRecord) -> str:
  inputs, targets = record.inputs_length, record.targets_length
  return f'{inputs} input and {targets} output tokens'


def _model(model: readings.Model) -> str:
  name, count = model.name, model.num_params
  if name is None or count is None:
    return readings.model_name(model)
  return f'{name} {readings.size(count)}'


def _distinct(values: Iterable[Any]) -> str:
  return ' / '.join(dict.fromkeys(map(str, values)))
