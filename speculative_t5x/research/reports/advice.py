# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Advice on gamma, and on whether to decode speculatively at all."""

from collections.abc import Sequence

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.speculation import widths

_FASTER = judgement.Verdict.FASTER


def describe(records: Sequence[run_record.RunRecord]) -> list[str]:
  """Return what follows from runs, which differ in gamma only, in sentences.

  They are advice on gamma and, where they were measured, the costs that a draft
  length that adapts needs. Runs whose times must not be read are left out, see
  `judgement`.
  """
  objections = [*map(judgement.objection, records)]
  reasons = [reason for reason in objections if reason]
  if len(reasons) == len(records):
    return [f'no advice: {reasons[0]}. {judgement.REMEDY}']
  records = [x for x, reason in zip(records, objections) if not reason]
  fastest = best(records)
  lines = describe_advice(fastest), describe_tree(fastest)
  return [x for x in (*lines, describe_costs(records)) if x is not None]


def best(records: Sequence[run_record.RunRecord]) -> run_record.RunRecord:
  """Return the fastest run, if possible of those shown to be faster."""
  faster = [x for x in records if judgement.verdict(x) == _FASTER]
  return max(faster or records, key=lambda record: record.speedup)


def describe_advice(record: run_record.RunRecord) -> str:
  """Return the best run as advice, which claims no gain not measured."""
  gamma = record.gamma
  measured = (
      f'{record.speedup:.2f}x measured,'
      f' {record.bound_speedup:.2f}x by the times of the parts'
  )
  at_best = f'at best {measured}, at gamma {gamma}'
  return {
      _FASTER: f'use gamma {gamma}: {measured}.',
      judgement.Verdict.SLOWER: (
          f'speculation does not pay: {at_best}. Decode plainly, or try another'
          ' drafter.'
      ),
      judgement.Verdict.NO_INTERVAL: (
          f'too few batches to say whether speculation pays: {at_best}.'
      ),
      judgement.Verdict.NO_DIFFERENCE: (
          f'speculation shows no gain: {at_best}, with an interval that'
          ' includes 1.'
      ),
  }[judgement.verdict(record)]


def describe_tree(record: run_record.RunRecord) -> str | None:
  """Return when a tree of candidates pays; None for a chain."""
  if record.drafter.candidates is None:
    return None
  return (
      f'a call of the tree takes {record.t_call_ms:.3g} ms and makes'
      f' {record.tokens_per_target_call:.2f} tokens. The tree pays if that is'
      " more tokens per millisecond than a call of its draft model's chain."
  )


def describe_costs(records: Sequence[run_record.RunRecord]) -> str | None:
  """Return what a draft length that adapts could gain, and what it needs.

  The records are of runs that differ in gamma only. None if that was not
  measured: at batch sizes above 1, under a policy that adapts, for drafts of
  one token, or if drafting took no longer than a clock can tell.
  """
  record = max(records, key=lambda each: each.gamma)
  if record.oracle_speedup is None or record.gamma == 1 or not record.c:
    return None
  sizes = widths.of_block(record.gamma + 1)
  first, *later = record.t_width_ms
  ratios = ', '.join(
      f'{size}: {ms / first:.2f}'
      for size, ms in zip(sizes[1:], later, strict=True)
  )
  return (
      f'the best possible draft lengths up to gamma {record.gamma} would give'
      f' {record.oracle_speedup:.2f}x. For the policy marginal_gain:'
      f' c={record.c:.2g},'
      f' verify_cost_ratio={{{ratios}}}.'
  )
