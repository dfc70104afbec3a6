# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adds each example's id to the features that T5X passes to a model."""

from collections.abc import Mapping

import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x.tasks import example_ids

EXAMPLE_ID = example_ids.EXAMPLE_ID


class ExampleIdConverter(seqio.EncDecFeatureConverter):
  """Converts to T5X's encoder-decoder features and `example_id` [] int32.

  The id is the one from the task, or in a task without ids a hash of the
  inputs. Both are independent of batches, order and shards. Packed batches,
  which are for training, have no ids.
  """

  def __init__(self, *args, **kwargs):
    """Takes the arguments of `seqio.EncDecFeatureConverter`."""
    super().__init__(*args, **kwargs)
    if not self.pack:
      scalar = seqio.FeatureConverter.FeatureSpec(dtype=tf.int32, rank=0)
      self.MODEL_FEATURES = {**super().MODEL_FEATURES, EXAMPLE_ID: scalar}

  def get_model_feature_lengths(
      self, task_feature_lengths: Mapping[str, int]
  ) -> Mapping[str, int]:
    """Overrides `seqio.FeatureConverter`; the id's length is a placeholder."""
    lengths = super().get_model_feature_lengths(task_feature_lengths)
    return lengths if self.pack else {**lengths, EXAMPLE_ID: 1}

  def _convert_example(self, features):
    converted = super()._convert_example(features)
    if self.pack:
      return converted
    if EXAMPLE_ID in features:
      example_id = _as_int32(features[EXAMPLE_ID])
    else:
      example_id = _of_inputs(features['inputs'])
    return {**converted, EXAMPLE_ID: example_id}


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
  number = tf.numpy_function(
      lambda tokens: np.int32(example_ids.of_inputs(tokens)),
      [inputs],
      tf.int32,
      stateful=False,
  )
  return tf.ensure_shape(number, [])
