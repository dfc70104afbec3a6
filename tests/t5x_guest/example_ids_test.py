# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every example keeps its own number, however a task is cut and batched."""

import numpy as np
import pytest
import seqio
import tensorflow as tf

from speculative_t5x import t5x_guest

LENGTHS = {'inputs': 4, 'targets': 3}
PLAIN = {'inputs': [[5, 1], [6, 7, 1], [8, 1]], 'targets': [[9, 1]] * 3}


def dataset(**features):
  ragged = {
      name: tf.ragged.constant(rows, tf.int32) for name, rows in PLAIN.items()
  }
  return tf.data.Dataset.from_tensor_slices(ragged | features).map(
      lambda x: {
          k: v.to_tensor() if isinstance(v, tf.RaggedTensor) else v
          for k, v in x.items()
      }
  )


def ids(converted):
  return [int(x['example_id']) for x in converted.as_numpy_iterator()]


def test_numbers_of_the_split():
  converter = t5x_guest.ExampleIdConverter(pack=False)
  converted = converter(dataset(), LENGTHS)
  assert ids(converted) == [0, 1, 2]
  assert len(converted) == 3  # T5X asks for it
  (first, *_) = converted.as_numpy_iterator()
  expected = seqio.EncDecFeatureConverter(pack=False)(dataset(), LENGTHS)
  (as_seqio, *_) = expected.as_numpy_iterator()
  del first['example_id']
  assert first.keys() == as_seqio.keys()
  for name in first:
    np.testing.assert_array_equal(first[name], as_seqio[name])


def test_ids_of_the_task_are_kept():
  converter = t5x_guest.ExampleIdConverter(pack=False, num_shards=2)
  own = tf.constant([40, 41, 7], tf.int64)
  assert ids(converter(dataset(example_id=own), LENGTHS)) == [40, 41, 7]


def test_shards_of_an_infer_job_make_up_the_whole():
  whole = ids(t5x_guest.ExampleIdConverter(pack=False)(dataset(), LENGTHS))
  found = {}
  for shard in range(2):
    converter = t5x_guest.ExampleIdConverter(
        pack=False, num_shards=2, shard_id=shard
    )
    part = ids(converter(dataset().shard(2, shard), LENGTHS))
    found |= {number: number for number in part}
    assert part == whole[shard::2]
  assert sorted(found) == whole


def test_packed_batches_have_none():
  converted = t5x_guest.ExampleIdConverter(pack=True)(dataset(), LENGTHS)
  assert 'example_id' not in converted.element_spec


def test_a_shard_that_is_none():
  with pytest.raises(ValueError, match='shard_id'):
    t5x_guest.ExampleIdConverter(pack=False, num_shards=2, shard_id=2)
