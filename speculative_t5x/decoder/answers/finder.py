# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers for requests, found by the encoder output that decoding reuses."""

from collections.abc import Iterable
import dataclasses
from typing import Any

import jax
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.decoder.answers import embedding
from speculative_t5x.decoder.answers import store as store_lib
from speculative_t5x.speculation import ranges

_PART = 1024  # answers that are added together


class Finder:
  """Adds earlier answers to requests as hints.

  The encoder runs once per request: its output serves the search, and then
  decoding. Hints are as wide as answers may be, so that they compile once. An
  answer is cut to the decoder's length, which no output exceeds.
  """

  def __init__(
      self,
      decoder: token_decoder.TokenDecoder,
      store: store_lib.Store,
      count: int = 1,
      min_similarity: float = store_lib.MIN_SIMILARITY,
  ):
    """Binds decoder and store; compiles nothing yet.

    Args:
      decoder: Decodes the requests by a drafter that reads hints.
      store: Has an embedder of the decoder's target.
      count: The most answers per example, see `Store.nearest`.
      min_similarity: See `Store.nearest`.
    Raises:
      ValueError: for a drafter that does not read hints, another target, or a
        number out of range.
      store.StoreError: if the store is empty.
    """
    store_lib.check(count=count, min_similarity=min_similarity)
    decoder.check_reads_hints()
    if store.embedder.model is not decoder.target:
      raise ValueError(
          "The store's embedder has another model than the decoder. Make the"
          ' Embedder with the target of the decoder.'
      )
    store.check_not_empty()
    self.decoder = decoder
    self.store = store
    self.count = count
    self.min_similarity = min_similarity
    self._jit_pool = jax.jit(embedding.pool)

  @property
  def identity(self) -> list[Any]:
    """What the answers that are found depend on, as JSON."""
    return [self.store.digest, self.count, self.min_similarity]

  def __call__(self, request: requests_lib.Request) -> requests_lib.Request:
    """Returns a request with features, and with answers behind its hints.

    The hints are an array of numpy. An example without tokens, which only pads
    the batch, gets no answers.
    """
    request = self.decoder.place(request)
    features = self.decoder.encode(request)
    vectors = self._jit_pool(features, request.inputs)
    found = [self._answers(vector) for vector in np.asarray(vectors)]
    if request.hints is not None:
      own = hints_lib.unstack(np.asarray(request.hints))
      found = [[*x, *y] for x, y in zip(own, found, strict=True)]
    room = self.count * (self.decoder.length + 1) - 1
    hints = hints_lib.stack(found, room)
    return request.replace(features=features, hints=hints)

  def _answers(self, vector: np.ndarray) -> list[list[int]]:
    """Returns the ids of the answers found, with the end of sequence."""
    if not vector.any():
      return []
    end = self.store.embedder.vocabulary.eos_id
    matches = self.store.nearest_to(vector, self.count, self.min_similarity)
    return [
        [*match.answer.tokens, end][: self.decoder.length] for match in matches
    ]


@dataclasses.dataclass(frozen=True)
class Folder:
  """A folder with a store, and what a job does with it.

  Attributes:
    path: Folder, local or remote.
    count: The most answers that an input gets as hints; see `Store.nearest`.
    min_similarity: See `Store.nearest`.
    append: Whether the job adds its predictions at its end, and makes the store
      if there is none.
    max_answers: The most answers to keep; None for the number of the store, or
      `store.MAX_ANSWERS` for a new one.
  """

  path: str
  count: int = 1
  min_similarity: float = store_lib.MIN_SIMILARITY
  append: bool = False
  max_answers: int | None = None

  def __post_init__(self):
    store_lib.check(count=self.count, min_similarity=self.min_similarity)
    if self.max_answers is not None:
      ranges.check_settings(ranges.COUNT, max_answers=self.max_answers)

  def open(self, embedder: embedding.Embedder) -> store_lib.Store:
    """Returns the store, which is not empty unless the job appends to it."""
    if self.append and not store_lib.exists(self.path):
      bound = self.max_answers or store_lib.MAX_ANSWERS
      return store_lib.Store(embedder, bound)
    store = store_lib.Store.load(self.path, embedder, self.max_answers)
    if not self.append:
      store.check_not_empty()
    return store

  def finder(
      self, decoder: token_decoder.TokenDecoder, store: store_lib.Store
  ) -> Finder:
    """Returns what adds answers of the store to requests."""
    return Finder(decoder, store, self.count, self.min_similarity)

  def add(
      self, embedder: embedding.Embedder, answers: Iterable[tuple[str, str]]
  ) -> None:
    """Adds pairs of an input and its output to the store in the folder."""
    store = self.open(embedder)
    for part in batching.parts(answers, _PART):
      store.add(*zip(*part, strict=True))
    store.save(self.path)
