# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts and rates of a run, under the names of the run record."""

from collections.abc import Mapping, Sequence
from typing import Any

from flax import struct
import jax
import numpy as np

from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.speculation import outcome as outcome_lib


@struct.dataclass
class Counts:
  """Sums over the rows of some batches, from which all counts follow.

  Attributes:
    tokens: Output tokens.
    target_calls: Target calls of rows that had not ended.
    loop_steps: Steps of the compiled loop.
    row_steps: Loop steps times rows, with ended rows and padding rows.
    speculation: Counts of draft tokens, as whole numbers and tuples of them;
      None for plain decoding.
  """

  tokens: int
  target_calls: int
  loop_steps: int
  row_steps: int
  speculation: outcome_lib.Statistics | None


def total(batches: Sequence[token_decoder.Decoded]) -> Counts:
  """Return the counts of a run, plain or speculative, over all its batches.

  Args:
    batches: Decoded batches, one or more, as numpy arrays.
  """
  return add([_of_batch(batch) for batch in batches])


def add(parts: Sequence[Counts]) -> Counts:
  """Return the sums of one or more counts of the same way of decoding."""
  return jax.tree.map(lambda *values: sum(values), *parts)


def _of_batch(batch: token_decoder.Decoded) -> Counts:
  return Counts(
      tokens=_sum_rows(batch.num_tokens),
      target_calls=_sum_rows(batch.num_calls),
      loop_steps=int(batch.num_steps),
      row_steps=int(batch.num_steps) * len(batch.num_calls),
      speculation=jax.tree.map(_sum_rows, batch.statistics),
  )


def _sum_rows(values: np.ndarray) -> int | tuple[int, ...]:
  """Return sums over the first axis."""
  return _plain(np.sum(values, axis=0))


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


def per_example(
    batches: Sequence[token_decoder.Decoded], num_decodes: int
) -> dict[str, np.ndarray]:
  """Return the counts of each example, summed over its decodes.

  Args:
    batches: Decoded batches of one run, plain or speculative, as numpy arrays.
    num_decodes: Rows per example.
  Returns:
    `tokens` and `target_calls`, [examples]; of a speculative run also the
    counts of `outcome.Statistics.named`.
  """
  columns = []
  for batch in batches:
    named = {} if batch.statistics is None else batch.statistics.named()
    run = {'tokens': batch.num_tokens, 'target_calls': batch.num_calls}
    columns.append(run | named)
  # -1 in place of the first size could be any where nothing is drafted.
  by_example = lambda x: x.reshape(
      len(x) // num_decodes, num_decodes, *x.shape[1:]
  ).sum(axis=1)
  return {
      name: by_example(np.concatenate([each[name] for each in columns]))
      for name in columns[0]
  }


def of_decodes(decodes: Sequence[results.Decode]) -> dict[str, Any]:
  """Return the counts of some outputs, as `per_example` those of an example."""
  found = {
      'tokens': sum(len(each.tokens) for each in decodes),
      'target_calls': sum(each.num_calls for each in decodes),
  }
  if decodes[0].statistics is not None:
    summed = _sum_decodes(decodes)
    found |= {name: x.tolist() for name, x in summed.named().items()}
  return found


def of_search(decodes: Sequence[results.Decode]) -> dict[str, int]:
  """Return the counts of a beam search, of which each output has all calls."""
  calls, statistics = decodes[0].num_calls, decodes[0].statistics
  further = 0 if statistics is None else int(statistics.num_accepted)
  return {
      'tokens': sum(len(each.tokens) for each in decodes),
      'target_calls': calls,
      'beam_steps': calls + further,
  }


def of_run(
    found: Sequence[results.Result], loop_steps: int, row_steps: int
) -> Counts:
  """Return the counts of an engine's results, and of the steps it took."""
  decodes = [decode for result in found for decode in result.decodes]
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


def padded_share(counts: Counts) -> float | None:
  """Return the share of row-steps spent on ended rows or padding rows."""
  used = _ratio(counts.target_calls, counts.row_steps)
  return None if used is None else 1 - used


def _ratio(numerator, denominator) -> float | None:
  return float(numerator) / float(denominator) if denominator else None
