# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adds each example's id to the features of T5X's models."""

from collections.abc import Mapping

import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x.tasks import examples

EXAMPLE_ID = examples.EXAMPLE_ID


class _WithExampleIds(seqio.FeatureConverter):
  """Adds `example_id` [] int32 to what a converter of seqio makes.

  The id is the one from the task, or in a task without ids a hash of the
  inputs. Both are independent of batches, order and shards. Packed batches,
  which are for training, have no ids.
  """

  def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    if not self.pack:
      spec = seqio.FeatureConverter.FeatureSpec(dtype=tf.int32, rank=0)
      self.MODEL_FEATURES = {**super().MODEL_FEATURES, EXAMPLE_ID: spec}

  def get_model_feature_lengths(self, task_feature_lengths):
    """Override `seqio.FeatureConverter`; the id's length is a placeholder."""
    lengths = super().get_model_feature_lengths(task_feature_lengths)
    return lengths if self.pack else {**lengths, EXAMPLE_ID: 1}

  def _id(self, features: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Return the id of an example of a task; nothing for a packed one."""
    if self.pack:
      return {}
    if EXAMPLE_ID in features:
      return {EXAMPLE_ID: _as_int32(features[EXAMPLE_ID])}
    return {EXAMPLE_ID: _of_inputs(features['inputs'])}


class ExampleIdConverter(_WithExampleIds, seqio.EncDecFeatureConverter):
  """Converts to the features of T5X's encoder-decoders, with example ids."""

  def _convert_example(self, features):
    return {**super()._convert_example(features), **self._id(features)}


class _PrefixConverter(_WithExampleIds, seqio.PrefixLMFeatureConverter):
  """Converts inputs and targets to one sequence, with example ids."""

  def _concat_and_add_masks(self, features):
    return {**super()._concat_and_add_masks(features), **self._id(features)}

  def _convert_example(self, features):
    return {**super()._convert_example(features), **self._id(features)}


class DecoderExampleIdConverter(seqio.DecoderFeatureConverter):
  """Converts to the features of T5X's decoders alone, with example ids.

  Tasks of targets alone, which are scored and not decoded, have none.
  """

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.prefixlm_feature_converter = _PrefixConverter(**kwargs)
    self.MODEL_FEATURES = self.prefixlm_feature_converter.MODEL_FEATURES


def _as_int32(example_id: tf.Tensor) -> tf.Tensor:
  if example_id.shape.rank != 0 or not example_id.dtype.is_integer:
    raise ValueError(
        f'The feature {EXAMPLE_ID} must be an integer scalar. Rename the'
        f" task's feature or change its values. Got {example_id.dtype.name}"
        f' of shape {example_id.shape}.'
    )
  return tf.cast(example_id, tf.int32)


def _of_inputs(inputs: tf.Tensor) -> tf.Tensor:
  # T5X pads with id 0, which may also be a token within a text.
  hash_of = lambda tokens: np.int32(examples.id_of(np.trim_zeros(tokens, 'b')))
  number = tf.numpy_function(hash_of, [inputs], tf.int32, stateful=False)
  return tf.ensure_shape(number, [])
