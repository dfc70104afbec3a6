# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests on their way, and the batches in which they are read."""

from collections.abc import Sequence
import dataclasses

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.speculation import contracts


@dataclasses.dataclass(eq=False)
class Work:
  """A request on its way.

  Attributes:
    tokenized: The request.
    num_begun: Decodes that have a place in the run.
    decodes: Decodes that have ended, by their number.
    is_cancelled: Whether its result is no longer wanted. Its rows end at the
      next return to the host.
    error: Why it has no result; None if it may have one.
  """

  tokenized: request_lib.Tokenized
  num_begun: int = 0
  decodes: dict[int, results.Decode] = dataclasses.field(default_factory=dict)
  is_cancelled: bool = False
  error: ValueError | None = None

  @property
  def request(self) -> request_lib.Request:
    return self.tokenized.request

  def restart(self) -> None:
    """Begin anew, because the rows that decoded it are lost."""
    self.num_begun = 0
    self.decodes.clear()

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


class Reader:
  """Makes batches of waiting requests, all of one shape.

  Attributes:
    rule: Decides which draft tokens are accepted.
    width: Requests that are read at once.
  """

  def __init__(
      self,
      shape: input_batch.Shape,
      rule: contracts.Rule | contracts.CoupledRule,
  ):
    """Bind the shape and the rule."""
    self.rule = rule
    self.width = shape.examples
    self._shape = shape

  def take(self, waiting: list[Work]) -> list[Work]:
    """Take the first request, and those with inputs of the most alike length.

    Reading takes as long as the longest input needs.
    """
    size = lambda work: len(work.request.inputs)
    first = size(waiting[0])
    order = sorted(waiting, key=lambda work: abs(size(work) - first))
    group = order[: self.width]
    for work in group:
      waiting.remove(work)
    return group

  def batch(self, group: Sequence[Work]) -> input_batch.InputBatch:
    """Return the batch of at most as many requests as are read at once."""
    requests = [work.request for work in group]
    return input_batch.stack(requests, self._shape, self.rule)
