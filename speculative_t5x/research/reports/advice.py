# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Advice on gamma, and on whether to decode speculatively at all."""

from collections.abc import Sequence

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.speculation import widths

_FASTER = judgement.Claim.FASTER
_CLAIMS = {
    _FASTER: 'use',
    judgement.Claim.SLOWER: (
        'decode plainly, or try another drafter: speculation does not pay, at'
        ' best at'
    ),
    judgement.Claim.NO_INTERVAL: (
        'too few batches to say whether speculation pays: at best at'
    ),
    judgement.Claim.NO_DIFFERENCE: (
        'speculation shows no gain, as its interval includes 1: at best at'
    ),
}


def describe(records: Sequence[run_record.RunRecord]) -> list[str]:
  """Return what follows from runs, which differ in gamma only, in sentences.

  They are advice on gamma and, where they were measured, the costs that a draft
  length that adapts needs. Runs whose times must not be read are left out, see
  `judgement`.
  """
  readable = [x for x in records if judgement.objection(x) is None]
  if not readable:
    reason = judgement.objection(records[0])
    return [f'no advice: {reason}. {judgement.REMEDY}']
  lines = describe_advice(best(readable)), describe_costs(readable)
  return [x for x in lines if x is not None]


def best(records: Sequence[run_record.RunRecord]) -> run_record.RunRecord:
  """Return the fastest run, if possible of those shown to be faster."""
  faster = [x for x in records if judgement.verdict(x) == _FASTER]
  return max(faster or records, key=lambda record: record.speedup)


def describe_advice(record: run_record.RunRecord) -> str:
  """Return the best run as advice, which claims no gain not measured."""
  return (
      f'{_CLAIMS[judgement.verdict(record)]} gamma {record.gamma}:'
      f' {record.speedup:.2f}x measured, {record.bound_speedup:.2f}x by the'
      ' times of the parts.'
  )


def describe_costs(records: Sequence[run_record.RunRecord]) -> str | None:
  """Return the costs that the policy marginal_gain needs.

  The records are of runs that differ in gamma only. None if they were not
  measured: for trees, for drafts of one token, or if drafting took no longer
  than a clock can tell.
  """
  record = max(records, key=lambda each: each.gamma)
  if not record.t_width_ms or record.gamma == 1 or not record.c:
    return None
  sizes = widths.of_block(record.gamma + 1)
  first, *later = record.t_width_ms
  ratios = ', '.join(
      f'{size}: {ms / first:.2f}'
      for size, ms in zip(sizes[1:], later, strict=True)
  )
  return (
      f'for the policy marginal_gain: c={record.c:.2g},'
      f' verify_cost_ratio={{{ratios}}}.'
  )
