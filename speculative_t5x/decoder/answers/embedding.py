# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs as vectors: the mean of what the target's encoder makes of them."""

from collections.abc import Sequence
import dataclasses
import functools
import hashlib

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

_MAX_BATCH = 64
_MIN_LENGTH = 16
_PROBE_LENGTH = 32
# Of one encoder in float32 and in bfloat16, or on two devices, the vectors of
# the probe differ by less; those of two encoders by far more.
_MIN_PROBE_SIMILARITY = 0.999


@dataclasses.dataclass(frozen=True)
class Fingerprint:
  """What tells whether vectors and token ids are of one encoder.

  It names no path, so that a checkpoint may be moved or converted, and does
  not depend on the decoder.

  Attributes:
    vocabulary: Hash of the pieces.
    probe: Vector of a fixed input, normalized.
  """

  vocabulary: str
  probe: tuple[float, ...]

  def difference(self, other: 'Fingerprint') -> str | None:
    """Returns how another one differs, in words; None if it does not."""
    if self.vocabulary != other.vocabulary:
      return 'another vocabulary'
    if len(self.probe) != len(other.probe):
      return 'an encoder of another width'
    if np.dot(self.probe, other.probe) < _MIN_PROBE_SIMILARITY:
      return 'another encoder'
    return None


class Embedder:
  """Computes vectors of inputs by the encoder of a model.

  Compiles once per shape. Batches and lengths are powers of two, so that there
  are few shapes.
  """

  def __init__(
      self,
      model: models.Model,
      vocabulary: vocabularies.Vocabulary,
      inputs_length: int,
  ):
    """Binds model and vocabulary; compiles nothing yet.

    Args:
      model: Target, whose encoder is used.
      vocabulary: Vocabulary of the target.
      inputs_length: Inputs are cut to this many tokens, end included.
    Raises:
      vocabularies.VocabularyError: if the vocabulary is not the model's.
      ValueError: for a length below 1.
    """
    ranges.check_settings(ranges.COUNT, inputs_length=inputs_length)
    models.check_end('of the inputs', vocabulary.eos_id, model.special_ids)
    self.vocabulary = models.fit_vocabulary(vocabulary, model)
    self.model = model
    self._inputs_length = inputs_length
    self._jit_embed = jax.jit(
        lambda params, tokens: pool(model.config.encode(params, tokens), tokens)
    )

  @functools.cached_property
  def fingerprint(self) -> Fingerprint:
    """What identifies encoder and vocabulary; runs the encoder once."""
    # Without T5's sentinels, which some files leave out.
    piece = self.vocabulary.id_to_piece
    pieces = [piece(i) for i in range(self.vocabulary.num_pieces)]
    ids = np.linspace(1, len(pieces) - 1, _PROBE_LENGTH, dtype=int)
    (probe,) = self._embed_rows([ids.tolist()])
    return Fingerprint(
        hashlib.sha256('\n'.join(pieces).encode()).hexdigest(),
        tuple(probe.tolist()),
    )

  def embed(self, texts: Sequence[str]) -> np.ndarray:
    """Returns the normalized vectors of inputs, [texts, embed] float32.

    Raises:
      ValueError: for an empty input, or one text in place of a list.
    """
    if isinstance(texts, str):
      raise ValueError(f'texts must be a list of texts, got {texts!r}.')
    end = self.vocabulary.eos_id
    rows = []
    for number, text in enumerate(texts):
      if not (ids := self.vocabulary.encode(text)):
        raise ValueError(
            f'Input {number} is empty. Remove it, or give it some text.'
        )
      rows.append(batching.cut([*ids, end], self._inputs_length, end))
    # Inputs of one length share a batch, so that little is padding.
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    width = network.features_width(self.model.config)
    vectors = np.zeros((len(rows), width), np.float32)
    for part in batching.parts(order, _MAX_BATCH):
      vectors[part] = self._embed_rows([rows[i] for i in part])
    return vectors

  def _embed_rows(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the vectors of at most _MAX_BATCH rows of ids."""
    length = max(batching.power_of_two(max(map(len, rows))), _MIN_LENGTH)
    size = batching.power_of_two(len(rows))
    size = sharding.round_up(self.model.mesh, size)
    # A row without tokens would have no mean.
    filled = [*rows, *[rows[0]] * (size - len(rows))]
    tokens = jnp.asarray(batching.pad(filled, length))
    with sharding.scope(self.model.mesh, self.model.rules):
      vectors = self._jit_embed(self.model.params, tokens)
    return np.asarray(vectors)[: len(rows)]


def pool(features: jax.Array, tokens: jax.Array) -> jax.Array:
  """Returns the mean encoder output of each row's tokens, normalized.

  Args:
    features: [texts, length, embed]. The output of the encoder.
    tokens: [texts, length] int32. Negative where there is no token.
  Returns:
    [texts, embed] float32; zeros for a row without tokens.
  """
  is_token = (tokens >= 0)[..., None]
  features = jnp.where(is_token, features.astype(jnp.float32), 0.0)
  total = jnp.sum(features, axis=1)
  # The mean has the direction of the sum.
  norm = jnp.linalg.norm(total, axis=-1, keepdims=True)
  return total / jnp.where(norm > 0, norm, 1)
