# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A store of answers as a job uses it."""

from collections.abc import Iterable
import dataclasses

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import token_decoder
from speculative_t5x.decoder.answers import embedding
from speculative_t5x.decoder.answers import finder as finder_lib
from speculative_t5x.decoder.answers import store as store_lib
from speculative_t5x.decoder.answers import versions
from speculative_t5x.speculation import ranges

_PART = 1024  # answers that are added together


@dataclasses.dataclass(frozen=True)
class Folder:
  """A folder with a store, and what a job does with it.

  Attributes:
    path: of the folder, local or remote.
    count: the most answers that an input gets as hints; see `Store.nearest`.
    min_similarity: likewise.
    append: whether the job adds its predictions at its end, and makes the store
      if there is none.
    max_answers: the most answers to keep; None for the number of the store, or
      store.MAX_ANSWERS for a new one.
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
    """Returns the store.

    Raises:
      versions.StoreError: see `Store.load`; also if the store is empty, unless
        the job appends to it.
    """
    if self.append and not versions.exists(self.path):
      bound = self.max_answers or store_lib.MAX_ANSWERS
      return store_lib.Store(embedder, bound)
    store = store_lib.Store.load(self.path, embedder, self.max_answers)
    if not self.append:
      store.check_not_empty()
    return store

  def finder(
      self, decoder: token_decoder.TokenDecoder, store: store_lib.Store
  ) -> finder_lib.Finder:
    """Returns what adds answers of the store to requests."""
    return finder_lib.Finder(decoder, store, self.count, self.min_similarity)

  def add(
      self,
      embedder: embedding.Embedder,
      answers: Iterable[tuple[str, str]],
  ) -> None:
    """Adds pairs of an input and its output to the store in the folder."""
    store = self.open(embedder)
    for part in batching.parts(answers, _PART):
      store.add(*zip(*part, strict=True))
    store.save(self.path)
