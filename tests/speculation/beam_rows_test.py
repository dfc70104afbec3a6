# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
import itertools

import jax
import numpy as np
import pytest

from speculative_t5x.speculation import beam_rows

EXAMPLES, BEAMS = 2, 3


@pytest.mark.parametrize(
    'take', (beam_rows.take, beam_rows.take_each, beam_rows.select_each)
)
def test_every_parent(take):
  rng = np.random.default_rng(0)
  tree = {
      'keys': rng.random((EXAMPLES * BEAMS, 2, 4), np.float32),
      'counts': rng.integers(9, size=EXAMPLES * BEAMS),
  }
  take = jax.jit(take)
  for one in itertools.product(range(BEAMS), repeat=BEAMS):
    parents = np.int32([one, one[::-1]])
    found = take(tree, parents)
    for name, values in tree.items():
      by_example = values.reshape(EXAMPLES, BEAMS, *values.shape[1:])
      expected = [by_example[i][parents[i]] for i in range(EXAMPLES)]
      np.testing.assert_array_equal(found[name], np.concatenate(expected))


def test_one_beam_needs_no_axis():
  assert beam_rows.take('a row', np.zeros((1, 1), np.int32)) == 'a row'
