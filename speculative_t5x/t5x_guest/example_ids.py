# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each example's own number among the features that T5X hands to a model.

A sample depends on seed and example id and on nothing else, so an example
must keep its id whatever the batch size and whoever decodes it.
"""

from collections.abc import Mapping

import seqio
import tensorflow as tf

EXAMPLE_ID = 'example_id'


class ExampleIdConverter(seqio.EncDecFeatureConverter):
  """T5X's encoder-decoder features, and `example_id` [] int32.

  An example keeps the id that its task gives it; in a task without ids its
  number in the split is one. Packed batches, which are for training, have no
  ids.
  """

  def __init__(self, *args, num_shards: int = 1, shard_id: int = 0, **kwargs):
    """Sets up the conversion.

    Args:
      *args: of `seqio.EncDecFeatureConverter`.
      num_shards: in how many parts infer jobs share a task. A part's examples
        are every `num_shards`-th of it.
      shard_id: which of the parts, from 0 on.
      **kwargs: of `seqio.EncDecFeatureConverter`.
    Raises:
      ValueError: for a shard id that is none.
    """
    super().__init__(*args, **kwargs)
    if not 0 <= shard_id < num_shards:
      raise ValueError(
          f'shard_id must lie in [0, {num_shards}), the number of shards, got'
          f' {shard_id}.'
      )
    self._num_shards = num_shards
    self._shard_id = shard_id
    if not self.pack:
      scalar = seqio.FeatureConverter.FeatureSpec(dtype=tf.int32, rank=0)
      self.MODEL_FEATURES = {**super().MODEL_FEATURES, EXAMPLE_ID: scalar}

  def get_model_feature_lengths(
      self, task_feature_lengths: Mapping[str, int]
  ) -> Mapping[str, int]:
    """See `seqio.FeatureConverter`; a scalar's length is not looked at."""
    lengths = super().get_model_feature_lengths(task_feature_lengths)
    return lengths if self.pack else {**lengths, EXAMPLE_ID: 1}

  def _convert_features(self, ds, task_feature_lengths):
    if not self.pack and EXAMPLE_ID not in ds.element_spec:
      ds = ds.enumerate().map(self._add_id)
    return super()._convert_features(ds, task_feature_lengths)

  def _add_id(self, index, features):
    number = index * self._num_shards + self._shard_id
    return {**features, EXAMPLE_ID: number}

  def _convert_example(self, features):
    converted = super()._convert_example(features)
    if self.pack:
      return converted
    return {**converted, EXAMPLE_ID: tf.cast(features[EXAMPLE_ID], tf.int32)}
