# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of training batches."""

import numpy as np
import pytest

from speculative_t5x.training import batches
from tests import tiny


@pytest.mark.parametrize(
    ('longest', 'limit', 'width'), [(3, 10, 8), (8, 10, 8), (9, 10, 10)]
)
def test_padded_lengths_are_round_or_the_limit(longest, limit, width):
  rows = [[7] * longest, [7]]
  padded = batches.pad(
      rows, rows, tiny.config(), 'it', {'inputs': limit, 'targets': limit}
  )
  assert padded.inputs.shape == padded.targets.shape == (2, width)
  assert np.sum(padded.inputs == 7) == longest + 1
  unlimited = batches.pad(rows, [[1], [1]], tiny.config(), 'it')
  assert unlimited.inputs.shape == (2, longest)
  assert unlimited.targets.shape == (2, 1)


class TestShuffle:
  """The 23 examples in batches of 5, two per group, give 2 groups per epoch."""

  LENGTHS = np.array([3, 9, 4, 7, 5, 8, 6] * 3 + [4, 9], np.int32)

  def _shuffle(self, seed=3):
    return batches.Shuffle(self.LENGTHS, batch_size=5, group_size=2, seed=seed)

  def test_an_epoch_has_no_example_twice(self):
    shuffle = self._shuffle()
    epochs = [shuffle.indices(4 * i, 4 * i + 4) for i in range(3)]
    for epoch in epochs:
      assert epoch.shape == (4, 5)
      assert len(set(epoch.ravel())) == 20
      assert epoch.min() >= 0 and epoch.max() < 23
    assert (epochs[0] != epochs[1]).any()
    assert len(set(shuffle.indices(0, 40).ravel())) == 23

  def test_batch_depends_on_seed_and_number_alone(self):
    shuffle = self._shuffle()
    whole = shuffle.indices(0, 13)
    for first, last in [(0, 1), (3, 5), (4, 8), (7, 13)]:
      np.testing.assert_array_equal(
          shuffle.indices(first, last), whole[first:last]
      )
    assert (self._shuffle(seed=4).indices(0, 13) != whole).any()

  def test_groups_have_similar_lengths(self):
    epoch = self.LENGTHS[self._shuffle().indices(0, 4)].reshape(2, -1)
    short, long = sorted(epoch.tolist(), key=max)
    assert max(short) <= min(long)
    assert short != sorted(short)


def test_padding_is_no_token_and_id_0_is_one():
  """In GPT-2 it is a word; inputs of a language model may be empty."""
  examples = batches.pad([[], []], [[0, 0, 5], [0]], tiny.config(), 'it')
  assert examples.inputs.tolist() == [[-1], [-1]]
  assert examples.targets.tolist() == [[0, 0, 5], [0, -1, -1]]
  np.testing.assert_array_equal(examples.lengths, [3, 1])


@pytest.mark.parametrize('num_examples', [6, 7, 8])
def test_fills_the_last_batch_with_padding(num_examples):
  rows = np.arange(1, 1 + 9 * num_examples).reshape(num_examples, 9)
  examples = batches.TokenPairs(rows[:, :5], rows[:, 5:])
  batched = batches.in_order(examples, 3)
  num_batches = -(-num_examples // 3)
  assert batched.inputs.shape == (num_batches, 3, 5)
  assert batched.targets.shape == (num_batches, 3, 4)
  flat = batched.targets.reshape(-1, 4)
  np.testing.assert_array_equal(flat[:num_examples], examples.targets)
  assert (flat[num_examples:] == -1).all()
