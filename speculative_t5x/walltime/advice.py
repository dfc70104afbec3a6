# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which gamma to take, and whether to speculate at all.

What each gamma would take is reckoned from what the target wrote (see
`analysis.expected_calls`) and from the times of the parts. Verifying was timed
at the gammas that were run; between them it is interpolated.

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
    gamma: the best one, 0 where none is predicted to gain.
    predicted_speedup: what it should gain, encoders included.
    measured: the record of the run at that gamma, None if it was not run.
  """

  gamma: int
  predicted_speedup: float
  measured: run_record.Record | None


def tokens_per_call(
    texts: Sequence[acceptance.Text], max_gamma: int
) -> np.ndarray:
  """Tokens a target call on these texts, for gamma 1 to max_gamma."""
  gammas = np.arange(1, max_gamma + 1)
  calls = sum(analysis.expected_calls(t.keep_probs, gammas) for t in texts)
  return sum(len(t.keep_probs) for t in texts) / calls


def predict_speedups(
    records: Sequence[run_record.Record], tokens_a_call: Sequence[float]
) -> np.ndarray:
  """Speedups for gamma 1, 2, ..., as far as the largest one that was run.

  Args:
    records: of one draft, law and batch size, a gamma each.
    tokens_a_call: for gamma 1, 2, ...
  """
  records = sorted(records, key=lambda record: record['gamma'])
  ran = [record['gamma'] for record in records]
  gammas = np.arange(1, ran[-1] + 1)
  times = [measurement.step_times_of(record) for record in records]
  middle = {
      field.name: float(np.median([getattr(t, field.name) for t in times]))
      for field in dataclasses.fields(analysis.StepTimes)
  }
  verify_ms = np.interp(gammas, ran, [t.t_verify_ms for t in times])
  steps = float(np.median([r['baseline']['loop_steps'] for r in records]))
  return np.array([
      analysis.bound_speedup(
          analysis.StepTimes(**middle | {'t_verify_ms': verify}),
          baseline_steps=steps,
          speculative_steps=steps / tokens,
          gamma=int(gamma),
      )
      for gamma, verify, tokens in zip(gammas, verify_ms, tokens_a_call)
  ])


def advise(
    records: Sequence[run_record.Record], tokens_a_call: Sequence[float]
) -> Advice:
  """The gamma to take; see `predict_speedups` for the arguments.

  It is the one predicted best, unless its run shows no gain: then the fastest
  run decides.
  """
  predicted = predict_speedups(records, tokens_a_call)
  best = int(np.argmax(predicted))
  measured = next((r for r in records if r['gamma'] == best + 1), None)
  if measured and analysis.verdict(measured['speedup_ci95']) != 'faster':
    measured = max(records, key=_by_gain)
    best = measured['gamma'] - 1
  gamma = best + 1 if predicted[best] > 1 else 0
  return Advice(gamma, float(predicted[best]), measured)


def _by_gain(record: run_record.Record) -> tuple[bool, float]:
  is_faster = analysis.verdict(record['speedup_ci95']) == 'faster'
  return is_faster, record['speedup']


def describe(advice: Advice) -> str:
  """The advice as a sentence; never a gain that was not measured as one."""
  predicted = f'{advice.predicted_speedup:.2f}x predicted'
  if advice.measured is not None:
    verdict = analysis.verdict(advice.measured['speedup_ci95'])
    measured = f'{advice.measured["speedup"]:.2f}x measured'
    if verdict == 'slower':
      return (
          f'speculation does not pay here: at best {measured}, {predicted}.'
          ' Decode plainly.'
      )
    if verdict == 'open, no interval':
      return (
          'too few batches to say whether speculation pays: at best'
          f' {measured}, {predicted}.'
      )
    if verdict != 'faster':
      return (
          f'speculation shows no gain: at best {measured}, {predicted}, and no'
          ' difference that is sure.'
      )
    gamma = advice.measured['gamma']  # a gain, whatever was predicted
    return f'take gamma {gamma}: {measured}, {predicted}.'
  if not advice.gamma:
    return (
        f'speculation does not pay here: at best {predicted}. Decode plainly.'
    )
  return f'take gamma {advice.gamma}: {predicted}; run it to be sure.'
