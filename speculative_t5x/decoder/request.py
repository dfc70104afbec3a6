# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One input to decode, and how."""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib


@dataclasses.dataclass(frozen=True)
class Request:
  """One input, and how it is decoded. No value compiles anew.

  Attributes:
    inputs: A text, or token ids with the end of sequence.
    example_id: With seed and decode number, all that a sample depends on, up to
      rounding; None for the request's number in its stream.
    seed: int32.
    sampling: Sampling of the target, which the outputs follow; argmax by
      default.
    draft_sampling: Sampling of the drafter; None for the target's. It changes
      the acceptance rate and never the distribution of the outputs.
    max_tokens: Most tokens per output, end included; None for the decoder's.
    num_decodes: Samples of this input.
    hints: Texts that the output may repeat, see `hints.Hints`; or lists of
      token ids, for an input of token ids.
  Raises:
    ValueError: for a value out of range.
  """

  inputs: str | Sequence[int]
  example_id: int | None = None
  _: dataclasses.KW_ONLY
  seed: int = 0
  sampling: sampling_lib.Sampling = sampling_lib.GREEDY
  draft_sampling: sampling_lib.Sampling | None = None
  max_tokens: int | None = None
  num_decodes: int = 1
  hints: hints_lib.Hints | Sequence[Sequence[int]] = None

  def __post_init__(self):
    for name in ('sampling', 'draft_sampling'):
      if (value := getattr(self, name)) is not None or name == 'sampling':
        requests_lib.check_sampling(name, value)
    ranges.check_settings(ranges.COUNT, num_decodes=self.num_decodes)
    if self.max_tokens is not None:
      ranges.check_settings(ranges.COUNT, max_tokens=self.max_tokens)
    requests_lib.check_int32('seed', self.seed)
    if self.example_id is not None:
      requests_lib.check_int32('example_id', self.example_id)


class Tokenized(NamedTuple):
  """A request of token ids, in which nothing is left to a default.

  Attributes:
    request: The request.
    is_truncated: Whether tokens of the input were cut.
    is_unknown: Whether it has text that the vocabulary does not know.
  """

  request: Request
  is_truncated: bool = False
  is_unknown: bool = False


class Shape(NamedTuple):
  """Sizes that are compiled in.

  Attributes:
    examples: Inputs that are read at once.
    inputs_length: Tokens per input.
    hints_length: Tokens of the hints of an input; 0 for none.
  """

  examples: int
  inputs_length: int
  hints_length: int


def stack(
    requests: Sequence[Request],
    shape: Shape,
    rule: contracts.Rule,
) -> requests_lib.Request:
  """Return a batch of requests, in which each has a sampling of its own.

  Args:
    requests: Tokenized; no more than the shape has.
    shape: Shape of the batch. What fills it is not decoded.
    rule: Decides which draft tokens are accepted.
  """
  num_missing = shape.examples - len(requests)
  filled = lambda values, filler=0: [*values, *[filler] * num_missing]
  column = lambda values: np.array(filled(values), np.int32)
  samplings = lambda values: sampling_lib.stack(
      filled(values, sampling_lib.GREEDY)
  )
  hints = None
  if shape.hints_length:
    stacked = hints_lib.stack(
        filled((x.hints for x in requests), ()), shape.hints_length
    )
    hints = stacked[:, : hints_lib.width(shape.hints_length)]
  return requests_lib.Request(
      batching.pad(
          filled((x.inputs for x in requests), ()), shape.inputs_length
      ),
      column(x.example_id for x in requests),
      column(x.max_tokens for x in requests),
      column(x.seed for x in requests),
      samplings(x.sampling for x in requests),
      samplings(x.draft_sampling or x.sampling for x in requests),
      rule,
      hints,
  )
