# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adds each example's id, and its hints, to the features of T5X's models."""

from collections.abc import Mapping
import dataclasses

import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.tasks import example_ids
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import task_vocabulary

EXAMPLE_ID = example_ids.EXAMPLE_ID
HINTS = 'hints'


@dataclasses.dataclass(frozen=True)
class Hints:
  """Hints as a feature of T5X's models."""

  vocabulary: seqio.Vocabulary  # the target's
  length: int  # the hints of an example are cut to this many tokens

  @property
  def width(self) -> int:
    """The width of the feature."""
    return self._stack([]).size

  def of(self, features: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Return the tokens of an example's hints, [width] int32."""
    texts = examples.hints_of(features)
    if texts is None:
      raise ValueError(
          f'hints_length is {self.length}, and the task has no feature'
          f' {HINTS!r}. Add it to the task, or leave hints_length out.'
      )
    tokens = tf.numpy_function(
        self._encode, [texts], tf.int32, stateful=False
    )
    return tf.ensure_shape(tokens, [self.width])

  def _encode(self, texts: np.ndarray | bytes) -> np.ndarray:
    vocabulary = task_vocabulary.of(self.vocabulary)
    texts = [each.decode() for each in np.atleast_1d(texts).tolist()]
    return self._stack(hints_lib.encode(texts, vocabulary, self.length))

  def _stack(self, encoded: list[list[int]]) -> np.ndarray:
    return hints_lib.stack([encoded], self.length)[0]


class ExampleIdConverter(seqio.EncDecFeatureConverter):
  """Converts to T5X's encoder-decoder features and `example_id` [] int32.

  The id is the one from the task, or in a task without ids a hash of the
  inputs. Both are independent of batches, order and shards. Packed batches,
  which are for training, have no ids and no hints.
  """

  def __init__(self, *args, hints: Hints | None = None, **kwargs):
    """Take the arguments of `seqio.EncDecFeatureConverter`.

    Hints add the feature `hints`, [width] int32.
    """
    super().__init__(*args, **kwargs)
    self._hints = None if self.pack else hints
    spec = seqio.FeatureConverter.FeatureSpec
    if not self.pack:
      own = {EXAMPLE_ID: spec(dtype=tf.int32, rank=0)}
      if self._hints:
        own[HINTS] = spec(dtype=tf.int32)
      self.MODEL_FEATURES = {**super().MODEL_FEATURES, **own}

  def get_model_feature_lengths(
      self, task_feature_lengths: Mapping[str, int]
  ) -> Mapping[str, int]:
    """Override `seqio.FeatureConverter`; the id's length is a placeholder."""
    lengths = super().get_model_feature_lengths(task_feature_lengths)
    own = {} if self.pack else {EXAMPLE_ID: 1}
    if self._hints:
      own[HINTS] = self._hints.width
    return {**lengths, **own}

  def _convert_example(self, features):
    converted = super()._convert_example(features)
    if self.pack:
      return converted
    if EXAMPLE_ID in features:
      example_id = _as_int32(features[EXAMPLE_ID])
    else:
      example_id = _of_inputs(features['inputs'])
    own = {EXAMPLE_ID: example_id}
    if self._hints:
      own[HINTS] = self._hints.of(features)
    return {**converted, **own}


def _as_int32(example_id: tf.Tensor) -> tf.Tensor:
  message = (
      f'The feature {EXAMPLE_ID} must be a 32-bit integer scalar. Rename the'
      " task's feature or change its values. Got"
  )
  if example_id.shape.rank != 0 or not example_id.dtype.is_integer:
    raise ValueError(
        f'{message} {example_id.dtype.name} of shape {example_id.shape}.'
    )
  wide = tf.cast(example_id, tf.float64)  # exact for 32-bit integers
  fits = (wide >= tf.int32.min) & (wide <= tf.int32.max)
  with tf.control_dependencies(
      [tf.debugging.Assert(fits, [message, example_id])]
  ):
    return tf.cast(example_id, tf.int32)


def _of_inputs(inputs: tf.Tensor) -> tf.Tensor:
  # T5X pads with id 0, which may also be a token within a text.
  hash_of = lambda tokens: np.int32(
      example_ids.of_inputs(np.trim_zeros(tokens, 'b'))
  )
  number = tf.numpy_function(hash_of, [inputs], tf.int32, stateful=False)
  return tf.ensure_shape(number, [])
