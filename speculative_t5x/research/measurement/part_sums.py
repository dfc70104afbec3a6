# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Walltimes of ideal loops, which take the sum of their parts' times."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from speculative_t5x.speculation import widths


@dataclasses.dataclass(frozen=True)
class StepTimes:
  """Times of the parts of a run, in seconds (`_s`) and milliseconds (`_ms`)."""

  target_encoder_s: float  # on a batch or on all inputs of a run
  draft_encoder_s: float  # on the same inputs
  t1_ms: float  # a target step on one position
  t_verify_ms: float  # a target step on gamma + 1 positions
  t_draft_ms: float  # a draft step on one position
  t_draft2_ms: float  # a block's first draft step, on two positions


@dataclasses.dataclass(frozen=True)
class PartTimes(StepTimes):
  """Times of the parts of a run, also of a loop whose drafts may be short."""

  t_call_ms: float  # a step of the loop, drafting and verification
  t_width_ms: tuple[float, ...]  # a target step at each width of verification


def plain_seconds(times: StepTimes, steps: float) -> float:
  """Return the seconds of ideal plain decoding, with the encoder."""
  return times.target_encoder_s + steps * times.t1_ms / 1e3


def speculative_seconds(
    times: StepTimes, draft_steps: float, calls_by_width: Sequence[float]
) -> float:
  """Return the seconds of ideal speculative decoding, with both encoders.

  The steps waited for `draft_steps` draft tokens. `calls_by_width`, [widths],
  are target calls; of several widths, those at the first one had no draft.
  """
  if len(calls_by_width) > 1:
    width_ms, drafting = times.t_width_ms, calls_by_width[1:]
  else:  # such a loop verifies whole blocks only
    width_ms, drafting = (times.t_verify_ms,), calls_by_width
  verify_ms = np.dot(calls_by_width, width_ms)
  first = min(sum(drafting), draft_steps)
  later = draft_steps - first
  draft_ms = first * times.t_draft2_ms + later * times.t_draft_ms
  encoders_s = times.target_encoder_s + times.draft_encoder_s
  return encoders_s + float(draft_ms + verify_ms) / 1e3


def oracle_seconds(times: PartTimes, accepted_histogram: np.ndarray) -> float:
  """Return the seconds of an ideal loop that drafts what is accepted.

  No policy can know how much that is. The histogram, [gamma + 1], has blocks by
  the number of accepted draft tokens, of a run that always drafts gamma tokens
  for a single row: rows of a batch wait for each other.
  """
  lengths = np.arange(len(accepted_histogram))
  sizes = widths.of_block(len(accepted_histogram))
  at_width = np.searchsorted(sizes, lengths + 1)
  return speculative_seconds(
      times,
      int(np.dot(accepted_histogram, lengths)),
      np.bincount(at_width, accepted_histogram, len(sizes)),
  )


def bound_speedup(
    times: StepTimes,
    *,
    baseline_steps: float,
    speculative_steps: float,
    gamma: int,
) -> float:
  """Return the speedup of ideal loops, with encoders, given the steps of each.
  """
  return plain_seconds(times, baseline_steps) / speculative_seconds(
      times, gamma * speculative_steps, [speculative_steps]
  )
