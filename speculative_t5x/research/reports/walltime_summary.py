# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The reports of walltime, simulate and eval jobs, and what all tables share.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs

# Columns of what speculative decoding gains.
SPEEDUPS = 'over plain', 'over T5X'
_HEADLINE = 'drafter', 'T', 'gamma', 'tokens/call', *SPEEDUPS, 'verdict'
_SIDES = {'baseline': 'plain', 'speculative': 'speculative'}
_KEYS = (
    'Keys of the record: alpha `alpha`, simulated `simulated_acceptance`;'
    ' tokens/call `tokens_per_target_call`; t1/floor `floor_ratio`; verify/t1'
    ' `verify_cost_ratio`; interleaved `t_call_ms` over the sum of its parts;'
    ' Thm 3.8 `predicted_speedup`; bound `bound_speedup`; over plain'
    ' `speedup` with `speedup_ci95`, which decides the verdict; over T5X'
    ' `reference`; efficiency `loop_efficiency`.'
)


def render(
    records: Sequence[run_record.RunRecord], lines: Sequence[str] = ()
) -> markdown.Page:
  """Return tables with a line per record, notes on them, and further lines."""
  notes = '\n'.join([*readings.input_notes(records), *_plain_quality(records)])
  tables = markdown.with_headline([*map(row, records)], _HEADLINE)
  parts = [setup(records), notes, *tables, _KEYS, cautions(records), *lines]
  return markdown.Page(parts, records)


def render_eval(records: Sequence[run_record.RunRecord]) -> markdown.Page:
  """Return the speed and the quality of both ways, a line per record."""
  at = [{'T': f'{record.temperature:g}'} for record in records]
  qualities = [x | quality(y) for x, y in zip(at, records, strict=True)]
  return markdown.Page(
      [
          setup(records),
          markdown.Table([*map(_eval_row, records)]),
          markdown.Table(markdown.filled(qualities)),
          '\n'.join(readings.input_notes(records)),
          cautions(records),
      ]
  )


def cautions(records: Iterable[run_record.RunRecord]) -> str:
  """Return lines on what a reader of the times must know; '' if nothing."""
  lines = {}
  for record in records:
    remarks = [f'{warning}.' for warning in record.warnings or ()]
    if reason := judgement.objection(record):
      remarks.append(f'{reason}. Its times are left out. {judgement.REMEDY}')
    for remark in remarks:
      name = f'{runs.label(record)}, gamma {record.gamma}'
      lines[f'- {name}: {remark}'] = None
  return '\n'.join(lines)


def row(record: run_record.RunRecord) -> markdown.Row:
  """Return the row of a record in the table of all values."""
  is_plain = record.drafter is None
  acceptance = 'simulated' if readings.is_simulated(record) else 'measured'
  verdict = judgement.verdict(record)
  record = judgement.readable(record)
  return {
      'drafter': 'none (plain)' if is_plain else readings.method(record),
      'T': f'{record.temperature:g}',
      'gamma': markdown.count(record.gamma),
      'batch': str(record.batch_size),
      'acceptance': markdown.MISSING if is_plain else acceptance,
      'alpha': markdown.number(readings.alpha(record)),
      'tokens/call': markdown.number(record.tokens_per_target_call),
      'c': markdown.number(record.c, 3),
      't1 ms': markdown.number(record.t1_ms, 3),
      't1/floor': markdown.number(record.floor_ratio),
      'verify/t1': markdown.number(record.verify_cost_ratio),
      'interleaved': markdown.number(readings.interleaving_factor(record)),
      'Thm 3.8': markdown.number(record.predicted_speedup),
      'bound': markdown.number(record.bound_speedup),
      'over plain': markdown.speedup(record),
      'over T5X': markdown.speedup(record.reference),
      'verdict': markdown.MISSING if is_plain else verdict,
      'efficiency': markdown.number(record.loop_efficiency),
  }


def _eval_row(record: run_record.RunRecord) -> markdown.Row:
  every, record = row(record), judgement.readable(record)
  steps, per_call = readings.per_target_call(record)
  return {
      **{name: every[name] for name in ('drafter', 'T', 'gamma')},
      f'{steps}/call': markdown.number(per_call),
      'accepted/drafted': markdown.number(record.draft_acceptance_rate),
      'accepted/tested': markdown.number(record.accepted_per_tested),
      'plain s': markdown.number(record.baseline.walltime_s),
      'speculative s': markdown.number(record.speculative.walltime_s),
      **{name: every[name] for name in ('over plain', 'verdict')},
  }


def quality(record: run_record.RunRecord) -> markdown.Row:
  """Return the metrics of both ways, and how many outputs are the same.

  Of a beam search, examples are counted by all of their hypotheses.
  """
  return {
      'texts': markdown.count(record.num_examples),
      **{
          f'{metric}, {side}': markdown.number(value)
          for name, side in _SIDES.items()
          for metric, value in vars(record.quality)[name].items()
      },
      **{
          # Each beam is a row, and a call is one of all of them.
          f'{side} calls per text': markdown.number(
              getattr(record, name).target_calls
              / (record.beams or 1)
              / record.num_examples
          )
          for name, side in _SIDES.items()
      },
      **{
          name.replace('_', ' '): markdown.count(count)
          for name, count in vars(record.greedy or _NOT_COMPARED).items()
          if count or name != 'unexplained'  # searches alone have them
      },
  }


_NOT_COMPARED = run_record.Greedy(None, None, None, None)


def setup(records: Sequence[run_record.RunRecord]) -> str:
  """Return a sentence on what was measured, with every value that occurs."""
  if not records:
    return 'Nothing was run.'
  drafters = [r.drafter for r in records if r.drafter is not None]
  models = [*(r.target for r in records), *drafters]
  parts = [
      *conditions(records),
      _distinct(map(_examples, records)),
      _distinct(m.dtype for m in models if m.dtype),
      'at most ' + _distinct(map(_lengths, records)),
      'target ' + _distinct(model(r.target) for r in records),
  ]
  if drafters:
    parts.append('draft ' + _distinct(map(model, drafters)))
  return f'Measured: {"; ".join(parts)}.'


def setting(decoder: token_decoder.TokenDecoder, *settings: str) -> str:
  """Return the models of a decoder, settings and the machine, for figures."""
  target, drafter = decoder.target.describe(), decoder.loaded_drafter
  machine = provenance.new_record('figure')
  models = f'target {model(target)}, draft {model(drafter.description)}'
  return '; '.join([models, *settings, f'{target.dtype}, {_hardware(machine)}'])


def conditions(records: Sequence[run_record.RunRecord]) -> list[str]:
  """Return what does not depend on models and tasks, with every value."""
  repeats = _distinct(r.repeats for r in records if r.repeats)
  return [
      _distinct(map(_hardware, records)),
      'batch ' + _distinct(r.batch_size for r in records),
      *(['repeats ' + repeats] if repeats else []),
      'seed ' + _distinct(r.seed for r in records),
      *dict.fromkeys(x for r in records for x in runs.unusual_sampling(r)),
      *dict.fromkeys(x for r in records for x in _unusual_outputs(r)),
  ]


def _unusual_outputs(record: run_record.RunRecord) -> list[str]:
  """Return how many outputs an example has, and the mesh, if there are."""
  count = record.num_decodes or 1
  kind = 'decodes' if record.beams is None else 'beams'
  axes = [f'{name} {size}' for name, size in (record.mesh or {}).items()]
  mesh = [f'mesh {", ".join(axes)}'] if axes else []
  return [f'{count} {kind}', *mesh] if count > 1 else mesh


def _plain_quality(records: Iterable[run_record.RunRecord]) -> list[str]:
  """Return a line per sampling on the task's metrics of plain decoding."""
  lines = {}
  for record in records:
    if record.quality and record.quality.baseline:
      others = runs.unusual_sampling(record)
      at = ', '.join([f'temperature {record.temperature:g}', *others])
      metrics = [
          f'{name} {markdown.number(value)}'
          for name, value in record.quality.baseline.items()
      ]
      lines[at] = f'Plain decoding at {at}: {", ".join(metrics)}'
  return [*lines.values()]


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


def model(model: readings.Model) -> str:
  """Return the name of a model, and its size."""
  name, count = model.name, model.num_params
  if name is None or count is None:
    return readings.model_name(model)
  return f'{name} {readings.size(count)}'


def _distinct(values: Iterable[Any]) -> str:
  return ' / '.join(dict.fromkeys(map(str, values)))
