# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Advice on gamma, and on whether to decode speculatively at all.

The measured speedup counts for each gamma that was run. For gammas in between
the speedup is interpolated, by a model that combines the text that the target
wrote (see `theory.expected_calls`) and the times of the parts.

Legend: gamma (draft tokens per block).
"""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import readings
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import theory
from speculative_t5x.speculation import widths

_FASTER = judgement.Verdict.FASTER


class Advice(NamedTuple):
  """The best gamma of a draft model.

  Attributes:
    measured: The record of the best run.
    untried: A gamma that was not run, and its expected speedup, which is larger
      than the measured one; None if there is no such gamma, or under a policy
      that adapts the length of drafts.
  """

  measured: run_record.RunRecord
  untried: tuple[int, float] | None


def tokens_per_call(
    texts: Sequence[acceptance.Text], max_gamma: int
) -> np.ndarray:
  """Return the expected tokens per target call on texts of the target.

  [max_gamma] float, for gamma 1, 2, ...
  """
  gammas = np.arange(1, max_gamma + 1)
  calls = sum(theory.expected_calls(t.acceptance_probs, gammas) for t in texts)
  return sum(len(t.acceptance_probs) for t in texts) / calls


def expect_speedups(
    records: Sequence[run_record.RunRecord], tokens_by_gamma: Sequence[float]
) -> np.ndarray:
  """Return the expected speedups for gamma 1, 2, ..., to the largest one run.

  For a gamma that was run it is the measured speedup. The records are of runs
  that differ in gamma only, and `tokens_by_gamma` are expected tokens per
  target call for gamma 1, 2, ...
  """
  records = sorted(records, key=lambda record: record.gamma)
  ran = [record.gamma for record in records]
  modelled = _modelled_speedups(records, tokens_by_gamma)
  ratios = [r.speedup / modelled[r.gamma - 1] for r in records]
  return modelled * np.interp(np.arange(1, ran[-1] + 1), ran, ratios)


def _modelled_speedups(records, tokens_by_gamma) -> np.ndarray:
  """Return the speedups that follow from the times of the parts.

  The times of a record are divided by its own target step, since the speed of
  the machine may have changed between records.
  """
  ran = [record.gamma for record in records]
  gammas = np.arange(1, ran[-1] + 1)
  parts = [
      np.array(dataclasses.astuple(walltimes.step_times_of(record)))
      / record.t1_ms
      for record in records
  ]
  middle = part_sums.StepTimes(*np.median(parts, axis=0).tolist())
  verify = np.interp(gammas, ran, [r.t_verify_ms / r.t1_ms for r in records])
  steps = float(np.median([r.baseline.loop_steps for r in records]))
  return np.array(
      [
          part_sums.bound_speedup(
              dataclasses.replace(middle, t_verify_ms=float(each)),
              baseline_steps=steps,
              speculative_steps=steps / tokens,
              gamma=int(gamma),
          )
          for gamma, each, tokens in zip(gammas, verify, tokens_by_gamma)
      ]
  )


def describe(
    records: Sequence[run_record.RunRecord], tokens_by_gamma: Sequence[float]
) -> list[str]:
  """Return what follows from runs, which differ in gamma only, in sentences.

  They are advice on gamma and, where they were measured, the costs that a draft
  length that adapts needs. Runs whose times must not be read are left out, see
  `judgement`. See `expect_speedups` for the arguments.
  """
  objections = [*map(judgement.objection, records)]
  reasons = [reason for reason in objections if reason]
  if len(reasons) == len(records):
    return [f'no advice: {reasons[0]}. {judgement.REMEDY}']
  records = [x for x, reason in zip(records, objections) if not reason]
  lines = [describe_advice(advise(records, tokens_by_gamma))]
  costs = describe_costs(records)
  return lines if costs is None else [*lines, costs]


def advise(
    records: Sequence[run_record.RunRecord], tokens_by_gamma: Sequence[float]
) -> Advice:
  """Return the fastest run, and a gamma that may be faster.

  See `expect_speedups` for the arguments.
  """
  verdict = judgement.verdict
  faster = [record for record in records if verdict(record) == _FASTER]
  measured = max(faster or records, key=lambda record: record.speedup)
  if readings.policy(measured) != draft_length.Fixed.name:
    return Advice(measured, None)  # the model is of drafts of a fixed length
  expected = expect_speedups(records, tokens_by_gamma)
  for record in records:
    expected[record.gamma - 1] = 0  # it is measured
  best = int(np.argmax(expected))
  gains = expected[best] > max(measured.speedup, 1)
  return Advice(measured, (best + 1, float(expected[best])) if gains else None)


def describe_advice(advice: Advice) -> str:
  """Return the advice as text, which claims no gain that was not measured."""
  record = advice.measured
  gamma = record.gamma
  measured = (
      f'{record.speedup:.2f}x measured,'
      f' {record.bound_speedup:.2f}x by the times of the parts'
  )
  verdict = judgement.verdict(record)
  at_best = f'at best {measured}, at gamma {gamma}'
  said = {
      _FASTER: f'use gamma {gamma}: {measured}.',
      judgement.Verdict.SLOWER: f'speculation does not pay: {at_best}.',
      judgement.Verdict.NO_INTERVAL: (
          f'too few batches to say whether speculation pays: {at_best}.'
      ),
      judgement.Verdict.NO_DIFFERENCE: (
          f'speculation shows no gain: {at_best}, with an interval that'
          ' includes 1.'
      ),
  }[verdict]
  if advice.untried:
    gamma, speedup = advice.untried
    return (
        f'{said} Gamma {gamma} was not run and is expected to give'
        f' {speedup:.2f}x: run it to be sure.'
    )
  if verdict == judgement.Verdict.SLOWER:
    return f'{said} Decode plainly, or try another drafter.'
  return said


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
