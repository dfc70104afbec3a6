# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts and rates of a run, under the names of the run record."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from speculative_t5x import token_decoder


def count_run(batches: Sequence[token_decoder.Decoded]) -> dict[str, int]:
  """Returns the counts of a run, plain or speculative, over all its batches.

  Args:
    batches: what the run decoded, as numpy arrays.
  """
  total = lambda field: int(sum(np.sum(getattr(b, field)) for b in batches))
  return {
      'tokens': total('num_tokens'),
      'target_calls': total('num_calls'),
      'loop_steps': total('num_steps'),
  }


def count_speculation(
    batches: Sequence[token_decoder.Decoded],
) -> dict[str, Any]:
  """Returns the counts that only a speculative run has.

  Acceptance per position is unconditional: draft tokens accepted at position i
  over draft tokens proposed there.
  """
  sums = jax.tree.map(
      lambda *counts: np.sum([np.sum(c, axis=0) for c in counts], axis=0),
      *[batch.statistics for batch in batches],
  )
  accepted_histogram = sums.accepted_histogram
  at_least = lambda histogram: np.cumsum(histogram[::-1])[::-1][1:]
  accepted_at = at_least(accepted_histogram)
  drafted_at = at_least(sums.drafted_histogram)
  accepted = int(accepted_at.sum())
  return {
      'drafted': int(drafted_at.sum()),
      'drafted_computed': int(sums.num_computed),
      'tested': accepted + int(sums.num_rejections),
      'accepted': accepted,
      'cut_short': int(sums.num_cut_short),
      'acceptance_histogram': tuple(accepted_histogram.tolist()),
      'per_position_acceptance': tuple(map(_ratio, accepted_at, drafted_at)),
  }


def acceptance_rates(speculative: Mapping[str, Any]) -> dict[str, float | None]:
  """Returns the rates of a record, from the counts of its speculative run."""
  accepted, calls = speculative['accepted'], speculative['target_calls']
  per_call = _ratio(accepted, calls)
  return {
      'draft_acceptance_rate': _ratio(accepted, speculative['drafted']),
      'accepted_per_tested': _ratio(accepted, speculative['tested']),
      'mean_acceptance_length': None if per_call is None else 1 + per_call,
      'tokens_per_target_call': _ratio(speculative['tokens'], calls),
  }


def padded_share(batches: Sequence[token_decoder.Decoded]) -> float | None:
  """Returns the share of row-steps spent on ended rows or padding rows."""
  row_steps = sum(int(b.num_steps) * len(b.num_calls) for b in batches)
  calls = sum(int(np.sum(b.num_calls)) for b in batches)
  used = _ratio(calls, row_steps)
  return None if used is None else 1 - used


def _ratio(numerator, denominator) -> float | None:
  return float(numerator) / float(denominator) if denominator else None
