# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids as batches to decode, and decoded ids as the ids of a text.

Strings, the examples of a task and random tokens all become requests here.

Legend: examples, inputs_length.
"""

from collections.abc import Iterable, Iterator, Sequence
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import token_decoder
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification


def parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
  """Yields lists of `size` items, read one list at a time; the last is shorter.

  Args:
    items: any number of them.
    size: of a list, at least 1.
  """
  remaining = iter(items)
  while part := list(itertools.islice(remaining, size)):
    yield part


def pad(
    rows: Sequence[Sequence[int]],
    length: int,
    filler: int = contracts.NO_TOKEN,
) -> np.ndarray:
  """Stacks token sequences, cut to `length` and padded to it.

  Args:
    rows: integers, one sequence per row.
    length: of every row of the result.
    filler: Fills a row.
  Returns:
    [len(rows), length] int32.
  """
  padded = np.full((len(rows), length), filler, np.int32)
  for filled, row in zip(padded, rows, strict=True):
    filled[: len(row)] = row[:length]
  return padded


def cut(ids: Sequence[int], limit: int, end: int) -> list[int]:
  """Cuts tokens to a limit, the last one being the end, as T5X's tasks do.

  Args:
    ids: of a text, the end of sequence included.
    limit: the most tokens that remain.
    end: of sequence.
  """
  if len(ids) <= limit:
    return list(ids)
  return [*ids[: limit - 1], end]


def text_ids(
    ids: Sequence[int], special_ids: contracts.SpecialIds
) -> list[int]:
  """Returns the decoded ids up to the end of sequence, without padding.

  Args:
    ids: of one decoded row.
    special_ids: of the model.
  """
  before_end = itertools.takewhile(lambda i: i not in special_ids.ends, ids)
  return [i for i in before_end if i != special_ids.padding]


def power_of_two(count: int) -> int:
  """Returns the least power of two that is at least 1 and at least `count`."""
  return 1 << max(count - 1, 0).bit_length()


def one_request(
    ids: Sequence[Sequence[int]],
    *,
    inputs_length: int,
    length: int,
    batch_size: int,
    temperature: float = 0.0,
    topk: int = 0,
    topp: float = 0.0,
    minp: float = 0.0,
    typicalp: float = 0.0,
    draft_temperature: float | None = None,
    seed: int = 0,
    example_ids: Sequence[int] | None = None,
    rule: contracts.Rule = verification.TOKENWISE,
    hints: np.ndarray | None = None,
) -> token_decoder.Request:
  """Returns one batch; checks what a caller from outside may get wrong.

  Args:
    ids: Tokens of each input, none empty.
    inputs_length: Width of the batch; longer inputs are cut.
    length: Most tokens per output.
    batch_size: Rows of the batch; those without an input are not decoded.
    temperature: Temperature of the target, and so on, see `TextDecoder.decode`.
    topk: See there.
    topp: See there.
    minp: See there.
    typicalp: See there.
    draft_temperature: See there.
    seed: See there.
    example_ids: See there.
    rule: See there.
    hints: [examples, any] int32, see `contracts.Context`; None without.
  Raises:
    ValueError: for no inputs, an empty one, or a value out of range.
  """
  if not ids:
    raise ValueError('There is nothing to decode. Give at least one input.')
  for index, row in enumerate(ids):
    if not len(row):
      raise ValueError(f'Input {index} is empty. Remove it, or give it tokens.')
  if example_ids is None:
    example_ids = range(len(ids))
  if len(example_ids) != len(ids):
    raise ValueError(
        'There must be one example id per input, got'
        f' {len(example_ids)} ids and {len(ids)} inputs.'
    )
  description.check(rule)
  token_decoder.check_int32('seed', seed)
  for index, each in enumerate(example_ids):
    token_decoder.check_int32(f'example_ids[{index}]', each)
  rules = dict(topk=topk, topp=topp, minp=minp, typicalp=typicalp)
  if draft_temperature is None:
    draft_temperature = temperature
  (request,) = requests(
      pad(ids, inputs_length),
      np.asarray(example_ids, np.int32),
      batch_size=batch_size,
      length=length,
      seed=seed,
      sampling=sampling_lib.make_sampling(temperature, **rules),
      draft_sampling=sampling_lib.make_sampling(draft_temperature, **rules),
      rule=rule,
      hints=hints,
  )
  return request


def requests(
    tokens: np.ndarray,
    example_ids: np.ndarray,
    *,
    batch_size: int,
    length: int | np.ndarray,
    seed: int,
    sampling: sampling_lib.Sampling,
    draft_sampling: sampling_lib.Sampling,
    rule: contracts.Rule = verification.TOKENWISE,
    hints: np.ndarray | None = None,
) -> Iterator[token_decoder.Request]:
  """Yields batches of one shape; rows of padding fill the last one.

  Args:
    tokens: [examples, inputs_length] int32.
    example_ids: [examples] int32.
    batch_size: examples per batch.
    length: the most tokens per output, or [examples] of them.
    seed: of the samples.
    sampling: the target's, which the outputs follow.
    draft_sampling: the drafter's.
    rule: which draft tokens are accepted.
    hints: [examples, any] int32, see `contracts.Context`; None without.
  Raises:
    ValueError: for hints of another number of examples.
  """
  if hints is not None and len(hints) != len(tokens):
    raise ValueError(
        f'There are hints for {len(hints)} examples and {len(tokens)} inputs.'
        ' Give one row of hints per input, of NO_TOKEN where there are none.'
    )
  fill = functools.partial(_fill_rows, count=batch_size)
  fill_tokens = functools.partial(fill, value=contracts.NO_TOKEN)
  limits = np.broadcast_to(np.asarray(length, np.int32), len(tokens))
  for start in range(0, len(tokens), batch_size):
    part = slice(start, start + batch_size)
    yield token_decoder.Request(
        encoder_input_tokens=fill_tokens(tokens[part]),
        example_ids=fill(example_ids[part]),
        limits=fill(limits[part]),
        seed=jnp.asarray(seed, jnp.int32),
        sampling=sampling,
        draft_sampling=draft_sampling,
        rule=rule,
        hints=None if hints is None else fill_tokens(hints[part]),
    )


def _fill_rows(x: np.ndarray, count: int, value: int = 0) -> jax.Array:
  width = [(0, count - len(x))] + [(0, 0)] * (x.ndim - 1)
  return jnp.asarray(np.pad(x, width, constant_values=value))
