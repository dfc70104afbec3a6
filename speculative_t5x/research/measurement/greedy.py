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
    batches: Sequence[input_batch.InputBatch],
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
  differences = [
      difference
      for batch, one, other in zip(
          batches, plain.decoded, speculative.decoded, strict=True
      )
      for difference in near_ties.compare(
          decoder, batch, one.sequences, other.sequences
      )
  ]
  near_tie = sum(each.is_near_tie for each in differences)
  identical = num_decodes * _num_examples(batches) - len(differences)
  return run_record.Greedy(identical, near_tie, len(differences) - near_tie)


def compare_beams(
    beams: int,
    batches: Sequence[input_batch.InputBatch],
    plain: interleaved.Run,
    speculative: interleaved.Run,
) -> run_record.Greedy:
  """Count examples with and without the same hypotheses; explain no other.

  The runs are of hypotheses as rows, see `report.of_search`.
  """
  differing = 0
  for one, other in zip(plain.decoded, speculative.decoded, strict=True):
    # What only fills a batch is the same on both sides.
    (first, _), (second, _) = one.hypotheses(beams), other.hypotheses(beams)
    differing += int(np.sum(np.any(first != second, axis=(1, 2))))
  identical = _num_examples(batches) - differing
  return run_record.Greedy(identical, 0, 0, unexplained=differing)


def _num_examples(batches: Sequence[input_batch.InputBatch]) -> int:
  """Return the number of examples, without those that only fill a batch."""
  return sum(int(np.sum(np.asarray(x.limits) > 0)) for x in batches)


def add(parts: Sequence[Mapping[str, int] | None]) -> run_record.Greedy | None:
  """Return the sums of the counts of several parts of a run, as JSON objects.

  What an earlier version stored lacks some counts.
  """
  if parts[0] is None:
    return None
  names = {name: None for part in parts for name in part}
  return run_record.Greedy(
      **{name: sum(part.get(name, 0) for part in parts) for name in names}
  )


def check(records: Sequence[run_record.RunRecord]) -> None:
  """Raise MismatchError if a record has a mismatch or too many near ties."""
  for record in records:
    greedy = record.greedy
    if greedy is None:
      continue
    # A near tie can occur even among few examples, in each beam.
    num_rows = record.num_examples * (record.beams or 1)
    most = max(1, MAX_NEAR_TIE_SHARE * num_rows)
    is_exact = (
        record.device.platform == 'cpu' and record.target.dtype == 'float32'
    )
    differing = greedy.near_tie + (greedy.unexplained or 0)
    if greedy.mismatch:
      problem = (
          f'{greedy.mismatch} outputs differ from plain decoding by more than'
          ' rounding.'
      )
    elif is_exact and differing > most:
      problem = (
          f'{differing} of {record.num_examples} outputs differ from plain'
          ' decoding, more than rounding in float32 on CPU explains.'
      )
    else:
      continue
    raise MismatchError(
        f'{problem} This is a bug; please report it with the record.'
    )
