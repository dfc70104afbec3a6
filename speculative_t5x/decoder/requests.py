# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is decoded at once, and how rows of token ids become it.

Strings, the examples of a task and random tokens all become requests here.

Legend: examples, inputs_length, num_decodes (samples per example).
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import itertools
import operator
import reprlib
from typing import Any, NamedTuple

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification

BATCH_SIZE = 8  # inputs that are decoded together, unless a call says so
_MISSING = object()


@struct.dataclass
class Request:
  """A batch to decode. New values do not recompile, new shapes do.

  Attributes:
    inputs: [examples, inputs_length] int32, with
      `contracts.NO_TOKEN` behind the tokens of a row.
    example_ids: [examples] int32. Up to rounding, a row's sample depends on
      seed, example id and decode number alone, whatever else is in the batch.
    limits: [examples] int32, most tokens of each output, at most the decoder's
      length; 0 for an example that only pads the batch.
    seed: int32, a scalar or [examples].
    sampling: Sampling of the target, which the outputs follow; scalars or
      [examples].
    draft_sampling: Likewise, of the drafter.
    rule: Decides which draft tokens are accepted. Only a rule that
      `is_lossless` keeps the distribution of the outputs.
    hints: [examples, any] int32, see `contracts.Context`; None without hints.
    features: [examples, inputs_length, embed], the output of the target's
      encoder for these tokens (`TokenDecoder.encode`), so that it does not run
      again; None to run it.
    rule_class: Class of `rule`, set from it.
  """

  inputs: jax.Array
  example_ids: jax.Array
  limits: jax.Array
  seed: jax.Array
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling
  rule: contracts.Rule = verification.TOKENWISE
  hints: jax.Array | None = None
  features: jax.Array | None = None
  rule_class: type | None = struct.field(pytree_node=False, default=None)

  def __post_init__(self):
    # JAX 0.10.2 compares registered dataclasses by their fields and not by
    # their class: `jax.jit` may run the program of another rule whose fields
    # are alike. As a static field, the class is compared.
    object.__setattr__(self, 'rule_class', type(self.rule))


def check_int32(name: str, value: int) -> None:
  """Check that a number fits a request.

  Any integer type will do. A float will not, even if it is whole: float32
  merges large example ids.

  Raises:
    ValueError: naming what is no integer or not of 32 bits.
  """
  limits = np.iinfo(np.int32)
  try:
    fits = limits.min <= operator.index(value) <= limits.max
  except TypeError:
    fits = False
  if not fits:
    plain = value.tolist() if hasattr(value, 'tolist') else value
    raise ranges.ArgumentError(
        f'{name} must be an integer of 32 bits, got {reprlib.repr(plain)}.',
        **{name: plain},
    )


def hints_of(request: Request) -> list[list[list[int]]]:
  """Return the token ids of the hints of each example."""
  if request.hints is None:
    return [[] for _ in request.example_ids]
  return hints_lib.unstack(np.asarray(request.hints))


class Row(NamedTuple):
  """One input of a request.

  Attributes:
    tokens: Token ids, none for an input that is not decoded.
    example_id: With the seed, all that a sample depends on, up to rounding.
    hints: Token ids of each hint, see `hints.encode`.
    is_decoded: Whether it is decoded; otherwise its output is empty.
    is_truncated: Whether tokens of the input were cut.
    is_unknown: Whether it has text that the vocabulary does not know.
  """

  tokens: Sequence[int]
  example_id: int
  hints: Sequence[Sequence[int]] = ()
  is_decoded: bool = True
  is_truncated: bool = False
  is_unknown: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
  """Settings that the inputs of a call share. None of their values recompiles.

  Attributes:
    sampling: Sampling of the target, which the outputs follow.
    draft_sampling: Sampling of the drafter; None for the target's. It changes
      the acceptance rate and never the distribution of the outputs.
    max_tokens: Most tokens per output, end included; None for the decoder's.
    seed: With an example id, all that a sample depends on, up to rounding.
    rule: Decides which draft tokens are accepted; `rules` has others. Another
      class compiles anew.
  Raises:
    ValueError: for a value out of range, or something that is not a Sampling or
      a rule.
  """

  sampling: sampling_lib.Sampling = sampling_lib.GREEDY
  draft_sampling: sampling_lib.Sampling | None = None
  max_tokens: int | None = None
  seed: int = 0
  rule: contracts.Rule = verification.TOKENWISE

  def __post_init__(self):
    check_sampling('sampling', self.sampling)
    if self.draft_sampling is not None:
      check_sampling('draft_sampling', self.draft_sampling)
    if self.max_tokens is not None:
      ranges.check_settings(ranges.COUNT, max_tokens=self.max_tokens)
    description.check(self.rule)
    check_int32('seed', self.seed)

  def within(self, max_tokens: int) -> 'Settings':
    """Return the settings for a decoder of so many tokens per output.

    Raises:
      ValueError: if more are asked for.
    """
    if (self.max_tokens or max_tokens) > max_tokens:
      raise ValueError(
          f'max_tokens is {self.max_tokens}, and the decoder was made for'
          f' {max_tokens}. Make it with max_tokens={self.max_tokens}.'
      )
    return dataclasses.replace(self, max_tokens=self.max_tokens or max_tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Requests(Settings):
  """Makes requests of one shape, which differ in their inputs alone.

  Attributes:
    inputs_length: Tokens per input; longer ones are cut.
    batch_size: Inputs per request.
  """

  inputs_length: int
  batch_size: int

  def of(self, rows: Sequence[Row]) -> Iterator[Request]:
    """Yield requests; rows that are not decoded fill the last one.

    Args:
      rows: Inputs. All their requests have hints if one of them has.
    """
    sampling = self.sampling.as_arrays()
    draft_sampling = sampling
    if self.draft_sampling is not None:
      draft_sampling = self.draft_sampling.as_arrays()
    hints = hints_lib.stack([row.hints for row in rows])
    for start in range(0, len(rows), self.batch_size):
      part = slice(start, start + self.batch_size)
      own = rows[part]
      tokens = batching.pad([row.tokens for row in own], self.inputs_length)
      limits = [self.max_tokens if row.is_decoded else 0 for row in own]
      yield Request(
          inputs=self._fill(tokens),
          example_ids=self._fill([row.example_id for row in own], 0),
          limits=self._fill(limits, 0),
          seed=jnp.asarray(self.seed, jnp.int32),
          sampling=sampling,
          draft_sampling=draft_sampling,
          rule=self.rule,
          hints=None if hints is None else self._fill(hints[part]),
      )

  def _fill(self, values, filler: int = contracts.NO_TOKEN) -> jax.Array:
    """Return an array with as many entries as a request has inputs."""
    values = np.asarray(values, np.int32)
    width = [(0, self.batch_size - len(values))] + [(0, 0)] * (values.ndim - 1)
    return jnp.asarray(np.pad(values, width, constant_values=filler))


def check_sampling(name: str, value: sampling_lib.Sampling) -> None:
  """Raise ValueError for anything else than a sampling."""
  if not isinstance(value, sampling_lib.Sampling):
    raise ValueError(
        f'{name} must be a Sampling, as Sampling(temperature=0.5), got'
        f' {value!r}.'
    )


def align(
    inputs: Iterable[Any], **columns: Iterable[Any] | None
) -> Iterator[tuple[int, Any, dict[str, Any]]]:
  """Yield index, input and entries of the columns, read one input at a time.

  Args:
    inputs: Any iterable.
    **columns: One entry per input each; None for a column without entries.
  Raises:
    ValueError: naming a column that has another number of entries.
  """
  columns = {name: x for name, x in columns.items() if x is not None}
  for name, column in columns.items():
    if isinstance(column, str):
      raise ValueError(
          f'{name} must be a list with one entry per input, got one text. Give'
          ' None for an input without an entry.'
      )
  rows = itertools.zip_longest(inputs, *columns.values(), fillvalue=_MISSING)
  for index, (value, *entries) in enumerate(rows):
    for name, entry in zip(columns, entries, strict=True):
      if _MISSING in (value, entry):
        ends, goes_on = ('inputs', name)[:: 1 if value is _MISSING else -1]
        raise ValueError(
            f'{name} must be a list with one entry per input: {ends} end after'
            f' {index}, and {goes_on} go on.'
        )
    yield index, value, dict(zip(columns, entries, strict=True))


def make_row(
    name: str, tokens: Sequence[int], example_id: int, **values: Any
) -> Row:
  """Return the row of an input.

  Args:
    name: What messages call the input.
    tokens: Its token ids.
    example_id: Its id.
    **values: Other attributes of the row.
  Raises:
    ValueError: for an input without tokens, or an id of more than 32 bits.
  """
  if not len(tokens):
    raise ValueError(f'{name} is empty. Remove it, or fill it.')
  check_int32(f'The example id of {name}', example_id)
  return Row(tokens, example_id, **values)


def some(rows: Iterable[Row]) -> list[Row]:
  """Return rows as a list; raise ValueError where there are none."""
  rows = list(rows)
  if not rows:
    raise ValueError('There is nothing to decode. Give at least one input.')
  return rows
