# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares speculative outputs with plain ones that they should equal."""

from collections.abc import Mapping, Sequence

import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.speculation import contracts

# In float32, near ties are so rare that a larger share indicates a bug.
MAX_NEAR_TIE_SHARE = 0.005


class MismatchError(RuntimeError):
  """Outputs differ by more than rounding explains, which is a bug."""


def compare(
    decoder: token_decoder.TokenDecoder,
    batches: list[input_batch.InputBatch],
    plain: interleaved.Run,
    speculative: interleaved.Run,
) -> run_record.Greedy | None:
  """Count identical rows, near ties and mismatches of two runs.

  None if their outputs need not be equal, which those of argmax and of a
  coupled rule must be, and for several decodes by argmax, which are equal.
  """
  rule, is_greedy = batches[0].rule, batches[0].sampling.is_greedy
  num_decodes = decoder.options.num_decodes
  is_drawn_alike = isinstance(rule, contracts.CoupledRule)
  if not (is_drawn_alike or is_greedy and rule.is_lossless):
    return None
  if is_greedy and num_decodes > 1:
    return None
  num_rows = near_tie = mismatch = 0
  for batch, one, other in zip(
      batches, plain.decoded, speculative.decoded, strict=True
  ):
    found = near_ties.compare(decoder, batch, one.sequences, other.sequences)
    num_decoded = int(np.sum(np.asarray(batch.limits) > 0))  # no padding
    num_rows += num_decoded * num_decodes
    near_tie += sum(each.is_near_tie for each in found)
    mismatch += sum(not each.is_near_tie for each in found)
  return run_record.Greedy(num_rows - near_tie - mismatch, near_tie, mismatch)


def add(
    parts: Sequence[Mapping[str, int] | None],
) -> run_record.Greedy | None:
  """Return the sums of the counts of several parts of a run, as JSON objects.
  """
  if parts[0] is None:
    return None
  return run_record.Greedy(**{k: sum(p[k] for p in parts) for k in parts[0]})


def check(records: Sequence[run_record.RunRecord]) -> None:
  """Raise MismatchError if a record has a mismatch or too many near ties."""
  for record in records:
    greedy, problem = record.greedy, None
    if greedy is None:
      continue
    # A single near tie can occur even among few examples. Each beam may have
    # one.
    num_rows = record.num_examples * (record.beams or 1)
    most = max(1, MAX_NEAR_TIE_SHARE * num_rows)
    is_exact = (
        record.device.platform == 'cpu' and record.target.dtype == 'float32'
    )
    if greedy.mismatch:
      problem = (
          f'{greedy.mismatch} outputs differ from plain decoding by more than'
          ' rounding.'
      )
    elif is_exact and greedy.near_tie > most:
      problem = (
          f'{greedy.near_tie} of {record.num_examples} outputs differ by'
          ' rounding, more than float32 on CPU explains.'
      )
    if problem:
      raise MismatchError(
          f'{problem} This is a bug; please report it with the record.'
      )
