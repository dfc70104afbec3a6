# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests on their way through an engine, and what reads them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
from typing import Any

from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results


@dataclasses.dataclass(eq=False)
class Pending:
  """A request on its way."""

  # The request, of token ids and with nothing left to a default.
  request: request_lib.Request
  is_truncated: bool = False  # whether tokens of the input were cut
  # Whether it has text that the vocabulary does not know.
  is_unknown: bool = False
  num_begun: int = 0  # decodes that have a place in the run
  # Decodes that have ended, by their number.
  decodes: dict[int, results.Decode] = dataclasses.field(default_factory=dict)
  # Whether its result is no longer wanted. Its rows end at the next return to
  # the host.
  is_cancelled: bool = False
  # Why it has no result; None if it may have one.
  error: ValueError | None = None

  @property
  def num_waiting(self) -> int:
    """Decodes that have no place yet and want one."""
    if self.is_cancelled:
      return 0
    return self.request.num_outputs - self.num_begun

  @property
  def is_begun(self) -> bool:
    return not self.num_waiting

  @property
  def has_ended(self) -> bool:
    has_all = len(self.decodes) == self.request.num_outputs
    return has_all or self.error is not None


class AnyDecoder:
  """A decoder of texts or of token ids, as an engine needs it.

  Attributes:
    tokens: The target and the drafter.
    inputs_are: Name of the argument with several inputs, and what it may be.
  """

  tokens: bound_pair.BoundPair
  inputs_are: tuple[str, str]

  def tokenized(
      self, request: request_lib.Request, number: int, name: str | None = None
  ) -> Pending:
    """Return a request as one of token ids, with nothing left to a default.

    Its number is its example id unless it has one, and names it in messages
    unless a name does.

    Raises:
      ValueError: for an input that cannot be decoded.
    """
    raise NotImplementedError

  def text(self, ids: Iterable[int], inputs: Sequence[int] = ()) -> str:
    """Return the text of an output; empty where there are no texts.

    Both are token ids, the output's and its input's.
    """
    return ''

  def requests(
      self,
      inputs: Iterable[Any],
      columns: Mapping[str, Iterable[Any] | None],
      settings: request_lib.Settings,
  ) -> Iterator[tuple[str, request_lib.Request]]:
    """Yield the requests of inputs, and their names; see `request.several`."""
    num_decodes = self.tokens.options.num_decodes
    if settings.search is not None:  # at once, also of a stream
      settings.search.check_num_decodes(num_decodes)
    return request_lib.several(
        *self.inputs_are, inputs, columns, settings, num_decodes
    )

  def all_tokenized(
      self,
      inputs: Iterable[Any],
      columns: Mapping[str, Iterable[Any] | None],
      settings: request_lib.Settings,
  ) -> list[Pending]:
    """Return the requests of one input or more; see `requests`."""
    requests = self.requests(inputs, columns, settings)
    rows = [
        self.tokenized(request, number, name)
        for number, (name, request) in enumerate(requests)
    ]
    if not rows:
      raise ValueError('There is nothing to decode. Give at least one input.')
    return rows
