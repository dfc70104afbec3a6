# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which gamma to take, and whether to speculate at all.

A run decides about its own gamma. Between the gammas that were run, what the
target wrote (see `analysis.expected_calls`) and the parts' times say how the
speedup goes from one run to the next.

Legend: gamma (guesses a block).
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from speculative_t5x import acceptance
from speculative_t5x import analysis
from speculative_t5x import run_record
from speculative_t5x.walltime import measurement


@dataclasses.dataclass(frozen=True)
class Advice:
  """What to do with a draft.

  Attributes:
    measured: the record of the best run.
    untried: a gamma that was not run, and the larger speedup expected of it;
      None where no such gamma is expected to gain.
  """

  measured: run_record.Record
  untried: tuple[int, float] | None


def tokens_per_call(
    texts: Sequence[acceptance.Text], max_gamma: int
) -> np.ndarray:
  """Tokens a target call on these texts, for gamma 1 to max_gamma."""
  gammas = np.arange(1, max_gamma + 1)
  calls = sum(analysis.expected_calls(t.keep_probs, gammas) for t in texts)
  return sum(len(t.keep_probs) for t in texts) / calls


def expect_speedups(
    records: Sequence[run_record.Record], tokens_a_call: Sequence[float]
) -> np.ndarray:
  """Speedups for gamma 1, 2, ..., as far as the largest one that was run.

  Those of the runs are theirs.

  Args:
    records: of one draft, law and batch size, a gamma each.
    tokens_a_call: for gamma 1, 2, ...
  """
  records = sorted(records, key=lambda record: record['gamma'])
  ran = [record['gamma'] for record in records]
  reckoned = _reckon(records, tokens_a_call)
  met = [r['speedup'] / reckoned[r['gamma'] - 1] for r in records]
  return reckoned * np.interp(np.arange(1, ran[-1] + 1), ran, met)


def _reckon(records, tokens_a_call) -> np.ndarray:
  """Speedups from the parts' times, in steps of the target.

  Ratios within a record are compared and no times: the machine may have had
  another speed when the next one was made.
  """
  ran = [record['gamma'] for record in records]
  gammas = np.arange(1, ran[-1] + 1)
  parts = [
      np.array(dataclasses.astuple(measurement.step_times_of(record)))
      / record['t1_ms']
      for record in records
  ]
  middle = analysis.StepTimes(*np.median(parts, axis=0).tolist())
  verify = np.interp(
      gammas, ran, [r['t_verify_ms'] / r['t1_ms'] for r in records]
  )
  steps = float(np.median([r['baseline']['loop_steps'] for r in records]))
  return np.array([
      analysis.bound_speedup(
          dataclasses.replace(middle, t_verify_ms=float(each)),
          baseline_steps=steps,
          speculative_steps=steps / tokens,
          gamma=int(gamma),
      )
      for gamma, each, tokens in zip(gammas, verify, tokens_a_call)
  ])


def advise(
    records: Sequence[run_record.Record], tokens_a_call: Sequence[float]
) -> Advice:
  """The fastest run, and whether another gamma may be faster.

  See `expect_speedups` for the arguments.
  """
  measured = max(records, key=_by_gain)
  expected = expect_speedups(records, tokens_a_call)
  for record in records:
    expected[record['gamma'] - 1] = 0  # known
  best = int(np.argmax(expected))
  gains = expected[best] > max(measured['speedup'], 1)
  return Advice(
      measured, (best + 1, float(expected[best])) if gains else None
  )


def _by_gain(record: run_record.Record) -> tuple[bool, float]:
  is_faster = analysis.verdict(record['speedup_ci95']) == 'faster'
  return is_faster, record['speedup']


def describe(advice: Advice) -> str:
  """The advice in words; never a gain that was not measured as one."""
  record = advice.measured
  gamma = record['gamma']
  measured = (
      f'{record["speedup"]:.2f}x measured,'
      f' {record["bound_speedup"]:.2f}x by its parts'
  )
  match analysis.verdict(record['speedup_ci95']):
    case 'faster':
      said = f'take gamma {gamma}: {measured}.'
    case 'slower':
      said = f'speculation does not pay: at best {measured}, at gamma {gamma}.'
    case 'open, no interval':
      said = (
          'too few batches to say whether speculation pays: at best'
          f' {measured}, at gamma {gamma}.'
      )
    case _:
      said = (
          f'speculation shows no gain: at best {measured}, at gamma {gamma},'
          ' and no difference that is sure.'
      )
  if advice.untried:
    gamma, speedup = advice.untried
    return (
        f'{said} Gamma {gamma} was not run and is expected to give'
        f' {speedup:.2f}x: run it to be sure.'
    )
  if analysis.verdict(record['speedup_ci95']) == 'slower':
    return f'{said} Decode plainly.'
  return said
