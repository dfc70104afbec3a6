# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts and rates of a run, under the names of the run record."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any

import jax
import numpy as np

from speculative_t5x.decoder import results
from speculative_t5x.speculation import outcome as outcome_lib


@dataclasses.dataclass
class Counts:
  """Sums over the rows of a run, from which all counts follow."""

  tokens: int = 0  # output tokens
  target_calls: int = 0  # target calls of rows that had not ended
  loop_steps: int = 0  # steps of the compiled loop
  row_steps: int = 0  # loop steps times rows, with ended rows and padding rows
  # Counts of draft tokens, as whole numbers and tuples of them; None for plain
  # decoding, and for what an engine counts as it runs.
  speculation: outcome_lib.Statistics | None = None

  @property
  def idle_share(self) -> float | None:
    """Share of row-steps that were spent on ended rows and padding rows."""
    used = _ratio(self.target_calls, self.row_steps)
    return None if used is None else 1 - used


def add(parts: Sequence[Counts]) -> Counts:
  """Return the sums of one or more counts of the same way of decoding."""
  values = [tuple(vars(part).values()) for part in parts]
  return Counts(*jax.tree.map(lambda *each: sum(each), *values))


def of_run(
    decodes: Iterable[results.Decode], loop_steps: int, row_steps: int
) -> Counts:
  """Return the counts of one or more outputs, and of the steps they took."""
  decodes = list(decodes)
  speculation = None
  if decodes[0].statistics is not None:
    speculation = jax.tree.map(_plain, _sum_decodes(decodes))
  return Counts(
      tokens=sum(len(each.tokens) for each in decodes),
      target_calls=sum(each.num_calls for each in decodes),
      loop_steps=loop_steps,
      row_steps=row_steps,
      speculation=speculation,
  )


def _plain(values: np.ndarray) -> int | tuple[int, ...]:
  plain = values.tolist()
  return tuple(plain) if isinstance(plain, list) else plain


def count_run(counts: Counts) -> dict[str, int]:
  """Return the counts that every run has."""
  names = 'tokens', 'target_calls', 'loop_steps'
  return {name: getattr(counts, name) for name in names}


def count_speculation(counts: Counts) -> dict[str, Any]:
  """Return the counts that only a speculative run has.

  Acceptance per position is unconditional: draft tokens accepted at position i
  over draft tokens proposed there.
  """
  sums = counts.speculation
  at_positions = lambda x: outcome_lib.tokens_per_position(np.asarray(x))
  accepted_at = at_positions(sums.accepted_histogram)
  drafted_at = at_positions(sums.drafted_histogram)
  return {
      'drafted': int(drafted_at.sum()),
      'drafted_computed': sums.num_computed,
      'tested': int(at_positions(sums.tested_histogram).sum()),
      'accepted': int(accepted_at.sum()),
      'cut_short': sums.num_cut_short,
      'acceptance_histogram': sums.accepted_histogram,
      'per_position_acceptance': tuple(map(_ratio, accepted_at, drafted_at)),
  }


def of_decodes(decodes: Sequence[results.Decode]) -> dict[str, Any]:
  """Return the counts of the outputs of an input, summed over them.

  `tokens` and `target_calls`; of a speculative run also the counts of
  `outcome.Statistics.named`.
  """
  summed = {
      'tokens': sum(len(each.tokens) for each in decodes),
      'target_calls': sum(each.num_calls for each in decodes),
  }
  if decodes[0].statistics is not None:
    named = _sum_decodes(decodes).named()
    summed |= {name: x.tolist() for name, x in named.items()}
  return summed


def of_result(
    decodes: Sequence[results.Decode], is_search: bool = False
) -> dict[str, Any]:
  """Return the counts of outputs, and of a speculative run its rates.

  Of a beam search, of which each output has all calls, `tokens`,
  `target_calls` and `beam_steps`.
  """
  if not is_search:
    counts = of_decodes(decodes)
    has_drafts = 'accepted' in counts
    return counts | acceptance_rates(counts) if has_drafts else counts
  # Each hypothesis has all calls of its search: a sum would count them twice.
  calls, statistics = decodes[0].num_calls, decodes[0].statistics
  further = 0 if statistics is None else int(statistics.num_accepted)
  return {
      'tokens': sum(len(each.tokens) for each in decodes),
      'target_calls': calls,
      'beam_steps': calls + further,
  }


def of_results(decoded: Sequence[results.Result]) -> dict[str, Any]:
  """Return the counts and rates of several inputs; see `of_result`."""
  names = decoded[0].statistics
  if 'beam_steps' not in names:
    return of_result([x for result in decoded for x in result.decodes])
  return {x: sum(result.statistics[x] for result in decoded) for x in names}


def _sum_decodes(decodes: Sequence[results.Decode]) -> outcome_lib.Statistics:
  own = [each.statistics for each in decodes]
  return jax.tree.map(lambda *values: np.sum(values, axis=0), *own)


def acceptance_rates(speculative: Mapping[str, Any]) -> dict[str, float | None]:
  """Return the rates of a record, from the counts of its speculative run."""
  accepted, calls = speculative['accepted'], speculative['target_calls']
  per_call = _ratio(accepted, calls)
  return {
      'draft_acceptance_rate': _ratio(accepted, speculative['drafted']),
      'accepted_per_tested': _ratio(accepted, speculative['tested']),
      'mean_acceptance_length': None if per_call is None else 1 + per_call,
      'tokens_per_target_call': _ratio(speculative['tokens'], calls),
  }


def _ratio(numerator, denominator) -> float | None:
  return float(numerator) / float(denominator) if denominator else None
