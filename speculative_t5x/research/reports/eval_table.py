# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The report that the eval job prints of its run records."""

from rich import console as console_lib

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs
from speculative_t5x.speculation import sampling as sampling_lib


def render(records: list[run_record.RunRecord]) -> console_lib.Group:
  """Return a table with one line per record, and what follows from it."""
  return console_lib.Group(
      _heading(records),
      console.table(map(_row, records)),
      *readings.input_notes(records),
      *map(_quality, records),
      *map(_verdict, records),
  )


def _heading(records: list[run_record.RunRecord]) -> str:
  record = records[0]
  device, host, drafter = record.device, record.host, record.drafter
  name = f'drafter {drafter.name}'
  if drafter.num_params is not None:
    name = f'draft {drafter.num_params / 1e6:.1f}M parameters'
  sampling = dict.fromkeys(x for r in records for x in runs.unusual_sampling(r))
  method = ', '.join([name, *readings.rule_and_policy(record), *sampling])
  count = record.num_decodes or 1
  kind = 'decodes' if record.beams is None else 'beams'
  decodes = f' x {count} {kind}' if count > 1 else ''
  axes = [f'{name} {size}' for name, size in (record.mesh or {}).items()]
  mesh = f'; mesh: {", ".join(axes)}' if axes else ''
  return (
      f'{record.task}, {record.split}: {record.num_examples} examples,'
      f' batch {record.batch_size}{decodes}; target'
      f' {record.target.num_params / 1e6:.1f}M, {method},'
      f' {record.target.dtype}; {device.count} x {device.kind},'
      f' {host.cores} cores ({host.cpu}){mesh}'
  )


def _row(record: run_record.RunRecord) -> markdown.Row:
  record = judgement.readable(record)
  what, per_call = readings.per_target_call(record)
  return {
      'temperature': f'{record.temperature:g}',
      'gamma': str(record.gamma),
      f'{what}/call': cells.number(per_call),
      'accepted/drafted': cells.number(record.draft_acceptance_rate),
      'accepted/tested': cells.number(record.accepted_per_tested),
      'plain s': cells.number(record.baseline.walltime_s),
      'speculative s': cells.number(record.speculative.walltime_s),
      'speedup': cells.number(record.speedup),
      '95% interval': cells.interval(record.speedup_ci95),
  }


def _quality(record: run_record.RunRecord) -> str:
  quality = record.quality
  metrics = ', '.join(
      f'{name} plain {cells.number(value)}, speculative'
      f' {cells.number(quality.speculative[name])}'
      for name, value in quality.baseline.items()
  )
  line = f'temperature {record.temperature:g}: {metrics}'
  greedy = record.greedy
  if greedy is None:
    return line
  is_greedy = record.temperature <= sampling_lib.MIN_TEMPERATURE
  outputs = 'greedy outputs' if is_greedy else 'samples'
  if record.beams is not None:
    outputs = 'examples, with all hypotheses,'
  if greedy.near_tie == greedy.mismatch == 0:
    return f'{line}; all {greedy.identical} {outputs} are identical'
  return (
      f'{line}; {outputs}: {greedy.identical} identical,'
      f' {greedy.near_tie} near ties, {greedy.mismatch} mismatches'
  )


def _verdict(record: run_record.RunRecord) -> str:
  """Return whether speculation pays: never if the interval includes 1."""
  times = f'{record.speedup:.2f}x the speed of plain decoding.'
  said = {
      judgement.Verdict.UNRELIABLE: (
          f'no verdict: {judgement.objection(record)}. {judgement.REMEDY}'
      ),
      judgement.Verdict.NO_INTERVAL: (
          'too few batches to say whether speculation pays.'
      ),
      judgement.Verdict.FASTER: f'speculation pays: {times}',
      judgement.Verdict.SLOWER: (
          f'speculation does not pay: {times} On this machine the target is'
          ' faster without this drafter; another one may pay.'
      ),
      judgement.Verdict.NO_DIFFERENCE: (
          'these examples show no difference in speed.'
      ),
  }[judgement.verdict(record)]
  return f'temperature {record.temperature:g}: {said}'
