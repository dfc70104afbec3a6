# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run records as a short table for a person."""

from speculative_t5x import analysis
from speculative_t5x import run_record
from speculative_t5x.paper import readings

_HEADER = (
    'temperature', 'gamma', 'tokens/call', 'accepted/drafted',
    'accepted/tested', 'plain s', 'speculative s', 'speedup', '95% interval',
)  # fmt: skip


def table(records: list[run_record.Record]) -> str:
  """The records of one job, a line each, and what follows from them."""
  rows = [_HEADER, *map(_row, records)]
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = [
      '  '.join(map(str.rjust, row, widths))
      for row in rows
  ]
  return '\n'.join(
      [_heading(records[0]), *lines]
      + readings.cut_inputs(records)
      + [*map(_quality, records), *map(_verdict, records)]
  )


def _heading(record: run_record.Record) -> str:
  device, host = record['device'], record['host']
  sizes = [record[key]['num_params'] / 1e6 for key in ('target', 'drafter')]
  return (
      f'{record["task"]}, {record["split"]}: {record["num_examples"]} examples,'
      f' batch {record["batch_size"]}{_decodes(record)}; target'
      f' {sizes[0]:.1f}M, draft {sizes[1]:.1f}M parameters,'
      f' {record["target"]["dtype"]};'
      f' {device["count"]} x {device["kind"]}, {host["cores"]} cores'
      f' ({host["cpu"]}){_mesh(record)}'
  )


def _decodes(record: run_record.Record) -> str:
  count = record['num_decodes']
  return f' x {count} decodes' if count and count > 1 else ''


def _mesh(record: run_record.Record) -> str:
  axes = [f'{name} {size}' for name, size in (record['mesh'] or {}).items()]
  return f'; mesh: {", ".join(axes)}' if axes else ''


def _row(record: run_record.Record) -> tuple[str, ...]:
  interval = record['speedup_ci95']
  return (
      f'{record["temperature"]:g}',
      str(record['gamma']),
      _number(record['tokens_per_target_call']),
      _number(record['draft_acceptance_rate']),
      _number(record['accepted_per_tested']),
      _number(record['baseline']['walltime_s']),
      _number(record['speculative']['walltime_s']),
      _number(record['speedup']) + 'x',
      '-' if interval is None else f'[{interval[0]:.2f}, {interval[1]:.2f}]',
  )


def _number(value: float | None) -> str:
  return '-' if value is None else f'{value:.2f}'


def _quality(record: run_record.Record) -> str:
  quality = record['quality']
  metrics = ', '.join(
      f'{name} plain {_number(value)}, speculative'
      f' {_number(quality["speculative"][name])}'
      for name, value in quality['baseline'].items()
  )
  line = f'temperature {record["temperature"]:g}: {metrics}'
  greedy = record['greedy']
  if greedy is None:
    return line
  if greedy['near_tie'] == greedy['mismatch'] == 0:
    return f'{line}; all {greedy["identical"]} greedy outputs are identical'
  return (
      f'{line}; greedy outputs: {greedy["identical"]} identical,'
      f' {greedy["near_tie"]} near ties, {greedy["mismatch"]} mismatches'
  )


def _verdict(record: run_record.Record) -> str:
  """Whether speculation pays; never for an interval that holds 1."""
  at = f'temperature {record["temperature"]:g}: '
  verdict = analysis.verdict(record['speedup_ci95'])
  if verdict == 'open, no interval':
    return at + 'too few batches to say whether speculation pays.'
  if verdict == 'faster':
    return at + f'speculation pays, {record["speedup"]:.2f}x as fast as plain.'
  if verdict == 'slower':
    return at + (
        f'speculation does not pay here: {record["speedup"]:.2f}x the speed of'
        ' plain decoding. Decode this target plainly on this machine.'
    )
  return at + 'no difference in speed that these examples can show.'
