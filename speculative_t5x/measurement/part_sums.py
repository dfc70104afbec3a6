# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Walltimes of ideal loops, which take the sum of their parts' times.

Legend: gamma (draft tokens per target call).
"""

import dataclasses

import numpy as np

from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class StepTimes:
  """Times of the parts of a run; raises ValueError for an impossible time.

  Attributes:
    target_encoder_s: the target's encoder on a batch or on all inputs of a run,
      seconds.
    draft_encoder_s: the draft's encoder on the same inputs, seconds.
    t1_ms: a target step on one position, milliseconds.
    t_verify_ms: a target step on gamma + 1 positions, milliseconds.
    t_draft_ms: a draft step on one position, milliseconds.
    t_draft2_ms: a block's first draft step, on two positions, milliseconds.
  """

  target_encoder_s: float
  draft_encoder_s: float
  t1_ms: float
  t_verify_ms: float
  t_draft_ms: float
  t_draft2_ms: float

  def __post_init__(self):
    for name, time in dataclasses.asdict(self).items():
      ranges.check_coefficient(name, time)
    verify = np.asarray(self.t_verify_ms)
    ranges.check('t_verify_ms', verify, verify > 0, 'be above 0')


def plain_seconds(times: StepTimes, steps: float) -> float:
  """Returns the seconds of ideal plain decoding, with the encoder.

  Args:
    times: times of the parts, at the batch size of the run.
    steps: number of loop steps; at batch 1 the number of tokens.
  """
  _check_steps(steps)
  return times.target_encoder_s + steps * times.t1_ms / 1e3


def speculative_seconds(times: StepTimes, steps: float, gamma: int) -> float:
  """Returns the seconds of ideal speculative decoding, with both encoders.

  Args:
    times: times of the parts, at the batch size and the gamma of the run.
    steps: number of loop steps; at batch 1 the number of target calls.
    gamma: draft tokens per step.
  """
  _check_steps(steps)
  later = float(ranges.check_finite_gamma(gamma)) - 1
  step_ms = times.t_draft2_ms + later * times.t_draft_ms + times.t_verify_ms
  encoders_s = times.target_encoder_s + times.draft_encoder_s
  return encoders_s + steps * step_ms / 1e3


def adaptive_seconds(
    times: StepTimes, steps: int, draft_steps: int, positions: int, gamma: int
) -> float:
  """Returns the seconds of an ideal loop whose drafts may be short.

  The time of verification between one position and gamma + 1 is interpolated.

  Args:
    times: times of the parts, at the batch size and the gamma of the run.
    steps: number of loop steps; at batch 1 the number of target calls.
    draft_steps: draft tokens that the steps waited for.
    positions: positions per row that the target calls computed.
    gamma: the most draft tokens per step.
  """
  _check_steps(steps)
  first = min(steps, draft_steps)
  draft_ms = (
      first * times.t_draft2_ms + (draft_steps - first) * times.t_draft_ms
  )
  more_ms = (times.t_verify_ms - times.t1_ms) / gamma
  verify_ms = steps * times.t1_ms + (positions - steps) * more_ms
  encoders_s = times.target_encoder_s + times.draft_encoder_s
  return encoders_s + (draft_ms + verify_ms) / 1e3


def bound_speedup(
    times: StepTimes,
    *,
    baseline_steps: float,
    speculative_steps: float,
    gamma: int,
) -> float:
  """Returns the speedup of ideal loops, with encoders.

  Args:
    times: times of the parts, at the batch size and the gamma of the run.
    baseline_steps: steps of the plain loop; at batch 1 the number of tokens.
    speculative_steps: steps of the speculative loop; at batch 1 the number of
      target calls.
    gamma: draft tokens per step.
  """
  return plain_seconds(times, baseline_steps) / speculative_seconds(
      times, speculative_steps, gamma
  )


def _check_steps(steps: float) -> None:
  is_allowed = 0 < steps < np.inf
  ranges.check('steps', np.asarray(steps), is_allowed, 'be finite and above 0')
