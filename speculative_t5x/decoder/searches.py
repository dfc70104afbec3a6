# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam searches of an engine's requests, in whole batches.

A batch is searched to its end at once; rows of samples wait meanwhile.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any, Protocol

import jax
import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import errors


class Work(Protocol):
  """A request on its way, see `engine.Work`."""

  request: request_lib.Request
  decodes: dict[int, results.Decode]
  error: ValueError | None


class Reader(Protocol):
  """Makes batches of requests, see `engine.Reader`."""

  def take(self, waiting: list[Any]) -> list[Any]:
    """Take those that are read together out of a list."""

  def batch(self, group: Sequence[Any]) -> input_batch.InputBatch:
    """Return their batch."""


@dataclasses.dataclass(frozen=True)
class Searches:
  """What searches for requests.

  Attributes:
    tokens: The decoder.
    rows: Hypotheses of all examples that are searched at once, at most, but for
      a single example that has more.
    reader: Takes the number of examples; returns what makes batches of them.
    count: Called with what was found, and how many examples were requests.
  """

  tokens: token_decoder.TokenDecoder
  rows: int
  reader: Callable[[int], Reader]
  count: Callable[[beam_search.Searched, int], None]

  def _reader(self, search: beam_search.BeamSearch) -> Reader:
    return self.reader(max(1, self.rows // search.beams))

  def warm_up(self, search: beam_search.BeamSearch) -> None:
    """Compile a search; decode nothing."""
    batch = self._reader(search).batch([])
    jax.block_until_ready(self.tokens.search(batch, search))

  def take(self, waiting: list[Work]) -> list[Work]:
    """Take the first request out of a list, and some that search alike."""
    search = waiting[0].request.search
    alike = [each for each in waiting if each.request.search == search]
    group = self._reader(search).take(alike)
    for work in group:
      waiting.remove(work)
    return group

  def run(self, group: Sequence[Work]) -> None:
    """Search for some requests of `take`; each gets its outputs or an error."""
    search = group[0].request.search
    batch = self._reader(search).batch(group)
    found = jax.device_get(self.tokens.search(batch, search))
    self.count(found, len(group))
    for index, work in enumerate(group):
      own = jax.tree.map(lambda x, index=index: x[index], found)
      try:
        with errors.prefixed(f'Example id {work.request.example_id}'):
          token_decoder.check_finite(own.scores[-1:])  # of the best one
      except ValueError as error:
        work.error = error
        continue
      work.decodes.update(self._outputs(own))

  def _outputs(self, own: beam_search.Searched) -> dict[int, results.Decode]:
    """Return the outputs of an example by number, from the best one on."""
    none = np.zeros((0,), np.float32)  # no score of a token is kept
    ends = self.tokens.target_model.special_ids.ends
    outputs = {}
    for number, index in enumerate(reversed(range(len(own.scores)))):
      tokens = own.sequences[index, : own.num_tokens[index]].tolist()
      outputs[number] = results.Decode(
          tokens,
          none,
          none,
          none.astype(np.int32),
          number,
          bool(tokens) and tokens[-1] in ends,
          own.scores[index],
          int(own.num_calls),
          own.statistics,
      )
    return outputs
