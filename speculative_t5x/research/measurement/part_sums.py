# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times of the parts of decoding, and of ideal loops, which take their sum."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from speculative_t5x.speculation import widths


@dataclasses.dataclass(frozen=True)
class PartTimes:
  """Times of the parts of a run, in seconds (`_s`) and milliseconds (`_ms`)."""

  target_encoder_s: float  # on a batch or on all inputs of a run
  draft_encoder_s: float  # on the same inputs
  t1_ms: float  # a target step on one position
  t_verify_ms: float  # a target step on gamma + 1 positions
  t_draft_ms: float  # a draft step on one position
  t_draft2_ms: float  # a block's first draft step, on two positions
  t_call_ms: float | None = None  # a step of the loop, drafting, verification
  # A target step at each width of verification, where drafts may be short.
  t_width_ms: tuple[float, ...] = ()

  def plain_seconds(self, steps: float) -> float:
    """Return the seconds of ideal plain decoding, with the encoder."""
    return self.target_encoder_s + steps * self.t1_ms / 1e3

  def speculative_seconds(
      self, draft_steps: float, calls_by_width: Sequence[float]
  ) -> float:
    """Return the seconds of ideal speculative decoding, with both encoders.

    The steps waited for `draft_steps` draft tokens. `calls_by_width`, [widths],
    are target calls; of several widths, those at the first one had no draft.
    """
    if len(calls_by_width) > 1:
      width_ms, drafting = self.t_width_ms, calls_by_width[1:]
    else:  # such a loop verifies whole blocks only
      width_ms, drafting = (self.t_verify_ms,), calls_by_width
    verify_ms = np.dot(calls_by_width, width_ms)
    first = min(sum(drafting), draft_steps)
    later = draft_steps - first
    draft_ms = first * self.t_draft2_ms + later * self.t_draft_ms
    encoders_s = self.target_encoder_s + self.draft_encoder_s
    return encoders_s + float(draft_ms + verify_ms) / 1e3

  def oracle_seconds(self, accepted_histogram: np.ndarray) -> float:
    """Return the seconds of an ideal loop that drafts what is accepted.

    No policy can know how much that is. The histogram, [gamma + 1], has blocks
    by the number of accepted draft tokens, of a run that always drafts gamma
    tokens for a single row: rows of a batch wait for each other.
    """
    lengths = np.arange(len(accepted_histogram))
    sizes = widths.of_block(len(accepted_histogram))
    at_width = np.searchsorted(sizes, lengths + 1)
    return self.speculative_seconds(
        int(np.dot(accepted_histogram, lengths)),
        np.bincount(at_width, accepted_histogram, len(sizes)),
    )
