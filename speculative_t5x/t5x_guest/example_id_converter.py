# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adds each example's id, and its hints, to the features of T5X's models."""

from collections.abc import Mapping
import dataclasses

import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import task_vocabulary

EXAMPLE_ID = examples.EXAMPLE_ID
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


class _WithExampleIds(seqio.FeatureConverter):
  """Adds `example_id` [] int32, and hints, to what a converter of seqio makes.

  The id is the one from the task, or in a task without ids a hash of the
  inputs. Both are independent of batches, order and shards. Packed batches,
  which are for training, have no ids and no hints.
  """

  def __init__(self, *args, hints: Hints | None = None, **kwargs):
    """Take the arguments of the converter.

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

  def _own(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Return what is added to an example of a task; nothing to a packed one."""
    if self.pack:
      return {}
    if EXAMPLE_ID in features:
      own = {EXAMPLE_ID: _as_int32(features[EXAMPLE_ID])}
    else:
      own = {EXAMPLE_ID: _of_inputs(features['inputs'])}
    if self._hints:
      own[HINTS] = self._hints.of(features)
    return own


class ExampleIdConverter(_WithExampleIds, seqio.EncDecFeatureConverter):
  """Converts to the features of T5X's encoder-decoders, with example ids."""

  def _convert_example(self, features):
    return {**super()._convert_example(features), **self._own(features)}


class _PrefixConverter(_WithExampleIds, seqio.PrefixLMFeatureConverter):
  """Converts inputs and targets to one sequence, with example ids."""

  def _concat_and_add_masks(self, features):
    return {**super()._concat_and_add_masks(features), **self._own(features)}

  def _convert_example(self, features):
    own = {} if self.pack else {EXAMPLE_ID: features[EXAMPLE_ID]}
    if self._hints:
      own[HINTS] = features[HINTS]
    return {**super()._convert_example(features), **own}


class DecoderExampleIdConverter(seqio.DecoderFeatureConverter):
  """Converts to the features of T5X's decoders alone, with example ids.

  Tasks of targets alone, which are scored and not decoded, have none.
  """

  def __init__(self, *, hints: Hints | None = None, **kwargs):
    """Take seqio's arguments, and hints as `ExampleIdConverter`."""
    super().__init__(**kwargs)
    self.prefixlm_feature_converter = _PrefixConverter(hints=hints, **kwargs)
    self.MODEL_FEATURES = self.prefixlm_feature_converter.MODEL_FEATURES


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
  hash_of = lambda tokens: np.int32(examples.id_of(np.trim_zeros(tokens, 'b')))
  number = tf.numpy_function(hash_of, [inputs], tf.int32, stateful=False)
  return tf.ensure_shape(number, [])
