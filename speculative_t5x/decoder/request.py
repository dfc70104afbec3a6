# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One input to decode, and how."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import operator
import reprlib
from typing import Any, Self
import warnings

import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.loading import errors
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification

BATCH_SIZE = 8  # inputs that are decoded together, unless a call says so
_MISSING = object()


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowSettings:
  """Settings of one input. No value compiles anew.

  Attributes:
    sampling: Sampling of the target, which the outputs follow; argmax by
      default.
    draft_sampling: Sampling of the drafter; None for the target's. It changes
      the acceptance rate and never the distribution of the outputs.
    max_tokens: Most tokens per output, end included; None for the decoder's.
    seed: int32. With an example id and a decode number, all that a sample
      depends on, up to rounding.
  Raises:
    ValueError: for a value out of range, or something that is not a Sampling.
  """

  sampling: sampling_lib.Sampling = sampling_lib.GREEDY
  draft_sampling: sampling_lib.Sampling | None = None
  max_tokens: int | None = None
  seed: int = 0

  def __post_init__(self):
    _check_sampling('sampling', self.sampling)
    if self.draft_sampling is not None:
      _check_sampling('draft_sampling', self.draft_sampling)
    if self.max_tokens is not None:
      ranges.check_settings(ranges.COUNT, max_tokens=self.max_tokens)
    check_int32('seed', self.seed)

  def within(self, max_tokens: int, **changes: Any) -> Self:
    """Return the settings for a decoder of so many tokens, and other changes.

    Raises:
      ValueError: if more are asked for.
    """
    if (self.max_tokens or max_tokens) > max_tokens:
      raise ValueError(
          f'max_tokens is {self.max_tokens}, and the decoder was made for'
          f' {max_tokens}. Make it with max_tokens={self.max_tokens}.'
      )
    max_tokens = self.max_tokens or max_tokens
    return dataclasses.replace(self, max_tokens=max_tokens, **changes)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(RowSettings):
  """Settings that the inputs of a call share.

  Attributes:
    rule: Decides which draft tokens are accepted; `rules` has others. Another
      class compiles anew.
    search: Beam search whose hypotheses are the outputs, in place of samples;
      None for none.
  Raises:
    ValueError: likewise for something that is not a rule, or one that a search
      has no use for.
  """

  rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE
  # Not among the keyword arguments of a call, which name the search's fields.
  search: beam_search.BeamSearch | None = dataclasses.field(
      default=None, kw_only=False
  )

  def __post_init__(self):
    super().__post_init__()
    description.check(self.rule)
    if self.search is not None:
      beam_search.check_draws_nothing(
          self.sampling, self.draft_sampling, self.rule
      )

  def request(
      self,
      inputs: str | Sequence[int],
      example_id: int | None = None,
      *,
      num_decodes: int = 1,
      hints: hints_lib.Hints | Sequence[Sequence[int]] = None,
  ) -> 'Request':
    """Return the request of one input; see `Request`."""
    shared = {**vars(self)}
    del shared['rule']
    return Request(
        inputs, example_id, **shared, num_decodes=num_decodes, hints=hints
    )

  @classmethod
  def of_call(cls, arguments: Mapping[str, Any]) -> Self:
    """Return the settings that keyword arguments of a call name."""
    fields, others = {}, {}
    for name, value in arguments.items():
      (fields if name in beam_search.NAMES else others)[name] = value
    return cls(search=beam_search.of(**fields), **others)


@dataclasses.dataclass(frozen=True)
class Request(RowSettings):
  """One input, and how it is decoded. No value compiles anew.

  For the attributes that are not named here, see `RowSettings`.

  Attributes:
    inputs: A text, or token ids: with the end of sequence where an encoder
      reads them, else the prompt that the output continues.
    example_id: int32. With seed and decode number, all that a sample depends
      on, up to rounding; None for the request's number in its stream.
    num_decodes: Samples of this input.
    search: Beam search whose hypotheses are the outputs, in place of samples;
      None for none.
    alternatives: Likeliest tokens that an engine keeps per position, with their
      log-probabilities, see `results.Decode`; at most 5, none of a search.
    hints: Texts that the output may repeat, see `hints.Hints`; or lists of
      token ids, for an input of token ids.
  Raises:
    ValueError: for a value out of range.
  """

  inputs: str | Sequence[int]
  example_id: int | None = None
  _: dataclasses.KW_ONLY
  num_decodes: int = 1
  search: beam_search.BeamSearch | None = None
  alternatives: int = 0
  hints: hints_lib.Hints | Sequence[Sequence[int]] = None

  def __post_init__(self):
    super().__post_init__()
    ranges.check_settings(ranges.COUNT, num_decodes=self.num_decodes)
    most = outcome.MAX_ALTERNATIVES if self.search is None else 0
    ranges.check_settings(ranges.whole(0, most), alternatives=self.alternatives)
    if self.search is not None:
      beam_search.check_draws_nothing(self.sampling, self.draft_sampling)
      self.search.check_num_decodes(self.num_decodes)
    if self.example_id is not None:
      check_int32('example_id', self.example_id)

  @property
  def num_outputs(self) -> int:
    """Samples, or hypotheses of the search."""
    return self.num_decodes if self.search is None else self.search.beams


def check_int32(name: str, value: int) -> None:
  """Check that a number fits a request.

  Any integer type will do. A float will not, even if it is whole: float32
  merges large example ids.

  Raises:
    ValueError: naming what is not an integer of 32 bits.
  """
  limits = np.iinfo(np.int32)
  try:
    fits = limits.min <= operator.index(value) <= limits.max
  except TypeError:
    fits = False
  if not fits:
    raise ranges.ArgumentError(
        f'{name} must be an integer of 32 bits, got {reprlib.repr(value)}.',
        **{name: value},
    )


def _check_sampling(name: str, value: sampling_lib.Sampling) -> None:
  if not isinstance(value, sampling_lib.Sampling):
    raise ValueError(
        f'{name} must be a Sampling, as Sampling(temperature=0.5), got'
        f' {value!r}.'
    )


def of(inputs: Request | str | Sequence[int]) -> Request:
  """Return a request as it is, and an input as a request of it alone."""
  return inputs if isinstance(inputs, Request) else Request(inputs)


def check_several(name: str, values: Any, allowed: str) -> None:
  """Raise ValueError for what is not iterable, and for one text or mapping."""
  one = str | bytes | bytearray | Mapping
  if isinstance(values, one) or not isinstance(values, Iterable):
    raise ValueError(
        f'{name} must be {allowed}; got {type(values).__name__}'
        f' {reprlib.repr(values)}.'
    )


def warn_of_cut(
    index: int, limit: int, stacklevel: int, num_others: int = 0
) -> None:
  """Warn once per call that the input of an index was cut, and others."""
  others = f' and {num_others} more' if num_others else ''
  warnings.warn(
      f'Input {index}{others} exceeded {limit} tokens and lost the rest: see'
      ' is_truncated of the results. Make the decoder with a larger'
      ' inputs_length.',
      stacklevel=stacklevel + 1,
  )


def several(
    name: str,
    allowed: str,
    inputs: Iterable[Any],
    columns: Mapping[str, Iterable[Any] | None],
    settings: Settings,
    num_decodes: int,
) -> Iterator[tuple[str, Request]]:
  """Yield the requests of inputs, read one at a time, and their names.

  The argument that has the inputs is called `name`, and may be what `allowed`
  says. The columns are `example_ids` and `hints`, one entry per input; None for
  none. All share the settings and the number of samples.

  Raises:
    ValueError: naming a column that has another number of entries.
  """
  check_several(name, inputs, allowed)
  columns = {column: x for column, x in columns.items() if x is not None}
  for column, entries in columns.items():
    check_several(column, entries, 'a list with one entry per input, or None')
  rows = itertools.zip_longest(inputs, *columns.values(), fillvalue=_MISSING)
  for index, (value, *entries) in enumerate(rows):
    for column, entry in zip(columns, entries, strict=True):
      if _MISSING in (value, entry):
        raise ValueError(
            f'{column} must have one entry per input: of both, one ends after'
            f' {index}.'
        )
    values = dict(zip(columns, entries, strict=True))
    named = f'{name}[{index}]'
    with errors.prefixed(named):
      request = settings.request(
          value,
          values.get('example_ids'),
          num_decodes=num_decodes,
          hints=values.get('hints'),
      )
    yield named, request
