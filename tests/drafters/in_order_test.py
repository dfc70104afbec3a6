# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of how two drafts become one."""

import jax.numpy as jnp

from speculative_t5x.drafters import in_order
from speculative_t5x.speculation import contracts


class TestJoin:

  def test_places_and_kinds(self):
    point = contracts.Draft(
        jnp.array([[7, 8, 0], [5, 0, 0], [0, 0, 0]]), jnp.array([2, 1, 0])
    )
    probs = jnp.arange(9, dtype=jnp.float32).reshape(3, 3, 1)
    drawn = contracts.Draft(
        jnp.array([[1, 2, 3], [1, 2, 3], [1, 2, 3]]),
        jnp.array([1, 2, 3]),
        probs,
    )
    found = in_order.join(point, drawn)
    assert found.tokens.tolist() == [[7, 8, 1], [5, 1, 2], [1, 2, 3]]
    assert found.lengths.tolist() == [3, 3, 3]
    assert found.is_point_mass.tolist() == [
        [True, True, False], [True, False, False], [False, False, False]
    ]  # fmt: skip
    assert found.probs[0, 2, 0] == probs[0, 0, 0]
    assert found.probs[1, 1:, 0].tolist() == probs[1, :2, 0].tolist()
    assert found.probs[2, :, 0].tolist() == probs[2, :, 0].tolist()

  def test_only_point_masses_need_no_probabilities(self):
    draft = contracts.Draft(jnp.zeros((1, 2), jnp.int32), jnp.array([1]))
    assert in_order.join(draft, draft).probs is None
