# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether speculative decoding wrote what plain greedy decoding writes."""

import numpy as np

from speculative_t5x import near_ties
from speculative_t5x import run_record
from speculative_t5x import token_decoder
from speculative_t5x.walltime import side_by_side

# In float32 rounding decides so rarely that more of it points to a bug.
MAX_NEAR_TIE_SHARE = 0.005


class MismatchError(RuntimeError):
  """Greedy outputs that differ by more than rounding: a bug."""


def compare(
    decoder: token_decoder.TokenDecoder,
    batches: list[token_decoder.Request],
    plain: side_by_side.Run,
    speculative: side_by_side.Run,
) -> dict[str, int] | None:
  """Row counts of identical outputs, near ties and mismatches.

  None for several decodes an example: at temperature 0 they are one and the
  same, so that decoding one is the way to compare.
  """
  if decoder.num_decodes > 1:
    return None
  counts = {'identical': 0, 'near_tie': 0, 'mismatch': 0}
  for batch, one, other in zip(
      batches, plain.decoded, speculative.decoded, strict=True
  ):
    found = near_ties.compare(decoder, batch, one.sequences, other.sequences)
    num_padding = int(np.sum(np.asarray(batch.limits) == 0))
    counts['identical'] += found.num_identical - num_padding
    counts['near_tie'] += len(found.near_ties)
    counts['mismatch'] += len(found.mismatches)
  return counts


def check(records: list[run_record.Record]) -> None:
  """Checks that no record has a mismatch, or more near ties than explained.

  Raises:
    MismatchError: if one has.
  """
  for record in records:
    greedy = record['greedy']
    if greedy is None:
      continue
    if greedy['mismatch']:
      raise MismatchError(
          f'{greedy["mismatch"]} greedy outputs differ from plain decoding by'
          ' more than rounding. This is a bug: please report it with the'
          ' record.'
      )
    # One may fall among any few examples.
    most = max(1, MAX_NEAR_TIE_SHARE * record['num_examples'])
    is_exact = (
        record['device']['platform'] == 'cpu'
        and record['target']['dtype'] == 'float32'
    )
    if is_exact and greedy['near_tie'] > most:
      raise MismatchError(
          f'{greedy["near_tie"]} of {record["num_examples"]} greedy outputs'
          ' differ by rounding, more than float32 on CPU explains. This is a'
          ' bug: please report it with the record.'
      )
