# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers for requests, found by the encoder output that decoding reuses.

Legend: examples, embed (width of the encoder).
"""


import jax
import numpy as np

from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.decoder.answers import embedding
from speculative_t5x.decoder.answers import store as store_lib


class Finder:
  """Adds earlier answers to requests as hints.

  The encoder runs once per request: its output serves the search, and then
  decoding. Hints are as wide as answers may be, so that they compile once. An
  answer is cut to the decoder's length, which no output exceeds.

  Attributes:
    decoder: of the requests.
    store: of the decoder's target.
    count: the most answers per example, see `Store.nearest`.
    min_similarity: likewise.
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
      decoder: whose drafter reads hints.
      store: whose embedder has the decoder's target.
      count: see `Store.nearest`.
      min_similarity: see `Store.nearest`.
    Raises:
      ValueError: for a TextDecoder, a drafter that does not read hints,
        another target, or a number out of range.
      versions.StoreError: if the store is empty.
    """
    store_lib.check(count=count, min_similarity=min_similarity)
    if not isinstance(decoder, token_decoder.TokenDecoder):
      raise ValueError(
          f'decoder must be a TokenDecoder, got a {type(decoder).__name__}. Of'
          ' a TextDecoder, give its attribute tokens.'
      )
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

  def __call__(self, request: token_decoder.Request) -> token_decoder.Request:
    """Returns a request with features, and with answers behind its hints.

    The hints are an array of numpy. An example without tokens, which only pads
    the batch, gets no answers.
    """
    request = self.decoder.place(request)
    features = self.decoder.encode(request)
    vectors = self._jit_pool(features, request.encoder_input_tokens)
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
