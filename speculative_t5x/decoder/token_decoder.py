# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids in, token ids out."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import engine
from speculative_t5x.decoder import keywords
from speculative_t5x.decoder import pending
from speculative_t5x.decoder import request as request_lib


class TokenDecoder(bound_pair.BoundPair, pending.AnyDecoder):
  """A target and a drafter that decode token ids.

  Compiles at the first call of a shape: see `engine.decode`. Another number of
  tokens, sampling or seed does not compile anew.
  """

  inputs_are = 'ids', 'a list of lists of ids'

  @property
  def tokens(self) -> Self:
    """Itself, as the `tokens` of a `TextDecoder` are."""
    return self

  def tokenized(self, request, number, name=None) -> pending.Pending:
    """Return a request with nothing left to a default; see `AnyDecoder`."""
    name = name or f'Request {number}'
    self._check_ids(name, request.inputs)
    if request.hints:
      self.check_reads_hints()
    return pending.Pending(
        self.resolved(request, number, name, request.inputs, request.hints)
    )

  def resolved(
      self,
      request: request_lib.Request,
      number: int,
      name: str,
      tokens: Sequence[int],
      hints: Sequence[Sequence[int]] | None,
  ) -> request_lib.Request:
    """Return a request of token ids with its id and its limit.

    Raises:
      ValueError: for an input without tokens, or a limit above the decoder's.
    """
    if not len(tokens):
      raise ValueError(f'{name} is empty. Remove it, or fill it.')
    return request.within(
        self.options.max_tokens,
        inputs=tokens,
        example_id=number if request.example_id is None else request.example_id,
        hints=hints or (),
    )

  @keywords.named(request_lib.Settings, beam_search.of)
  def generate(
      self,
      ids: Iterable[Sequence[int]] | Sequence[int],
      *,
      batch_size: int = request_lib.BATCH_SIZE,
      example_ids: Iterable[int] | None = None,
      **settings: Any,
  ) -> list[list[int]] | list[int]:
    """Decode token ids speculatively.

    Args:
      ids: Tokens of each input, with the end of sequence if the target was
        trained with one there; or of one input. No input is empty.
      batch_size: Most inputs that are decoded together.
      example_ids: One id per input; 0, 1, ... by default.
      **settings: Those of `request.Settings`: `sampling`, `draft_sampling`,
        `max_tokens`, `seed` and `rule`; those of a `BeamSearch`, as `beams`.
    Returns:
      Tokens of the best output per input, without end of sequence and padding;
      of one input as one list.
    Raises:
      TypeError: for an unknown argument.
      ValueError: for an empty input, one that is longer than `inputs_length`,
        an id that the target does not have, or a value out of range.
    """
    settings = request_lib.Settings.of_call(settings)
    if is_one := _is_one_input(ids):
      ids = [ids]
    rows = self.all_tokenized(ids, {'example_ids': example_ids}, settings)
    results = engine.decode(self, rows, settings.rule, batch_size)
    tokens = [result.tokens[-1] for result in results]
    return tokens[0] if is_one else tokens

  def _check_ids(self, name: str, ids: Sequence[int]) -> None:
    if isinstance(ids, str) or not hasattr(ids, '__len__'):
      raise ValueError(f'{name} must be a list of ids, got {ids!r}.')
    size, limit = self.target_model.vocab_size, self.options.inputs_length
    if len(ids) > limit:
      raise ValueError(
          f'{name} has {len(ids)} tokens, and the decoder takes {limit}. Cut'
          f' it, or make the decoder with inputs_length={len(ids)}.'
      )
    for token in ids:
      # It would be looked up as another id.
      if not 0 <= token < size or token != int(token):
        raise ValueError(
            f'{name} must have token ids from 0 to {size - 1}, which the target'
            f' has, got {token}.'
        )


def _is_one_input(ids: Any) -> bool:
  is_some = hasattr(ids, '__len__') and len(ids) > 0
  return is_some and not isinstance(ids[0], str) and np.ndim(ids[0]) == 0
