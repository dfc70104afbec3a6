# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that examples keep their ids, however a task is split and batched."""

import numpy as np
import pytest
import seqio
import tensorflow as tf

from speculative_t5x import t5x_guest
from speculative_t5x.tasks import examples

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


def convert(ds, **kwargs):
  converter = t5x_guest.ExampleIdConverter(**({'pack': False} | kwargs))
  return converter(ds, LENGTHS)


def ids(converted):
  return [int(x['example_id']) for x in converted.as_numpy_iterator()]


def test_ids_follow_from_inputs_by_default():
  converted = convert(dataset())
  expected = [examples.id_of(np.array(x)) for x in PLAIN['inputs']]
  assert ids(converted) == expected
  assert len(set(expected)) == 3
  assert len(converted) == 3  # T5X asks for it


def test_order_shards_and_filters_do_not_matter():
  whole = ids(convert(dataset()))
  assert ids(convert(dataset().shard(2, 1))) == whole[1::2]
  assert ids(convert(dataset().skip(2).concatenate(dataset().take(1)))) == [
      whole[2], whole[0]
  ]  # fmt: skip


def test_other_features_are_seqios():
  expected = seqio.EncDecFeatureConverter(pack=False)(dataset(), LENGTHS)
  for ours, theirs in zip(
      convert(dataset()).as_numpy_iterator(), expected.as_numpy_iterator()
  ):
    del ours['example_id']
    assert ours.keys() == theirs.keys()
    for name in ours:
      np.testing.assert_array_equal(ours[name], theirs[name])


def test_ids_of_the_task_are_used():
  numbers = [2**31 - 1, -(2**31), 7]
  own = tf.constant(numbers, tf.int64)
  assert ids(convert(dataset(example_id=own))) == numbers


@pytest.mark.parametrize(
    'own',
    [[0.0, 0.5, 1.0], ['a', 'b', 'c'], [[1], [2], [3]]],
    ids=['fractions', 'texts', 'lists'],
)
def test_invalid_ids(own):
  with pytest.raises(ValueError, match='example_id must be an integer'):
    convert(dataset(example_id=tf.constant(own)))


def test_packed_batches_have_no_ids():
  assert 'example_id' not in convert(dataset(), pack=True).element_spec
