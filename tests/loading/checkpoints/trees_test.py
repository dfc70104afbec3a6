# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of trees of parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading.checkpoints import trees


class TestIsFinite:

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
  @pytest.mark.parametrize('number', [np.nan, np.inf, -np.inf, 3.0])
  def test_one_number(self, number, dtype):
    """In NumPy, and in a program, as on an accelerator."""
    x = jnp.ones((3, 50), dtype).at[1, 7].set(number)
    assert bool(trees.is_finite(x)) == np.isfinite(number)
    assert bool(trees._is_finite(x)) == np.isfinite(number)

  def test_other_arrays(self):
    assert trees.is_finite(jnp.ones((0, 3)))
    assert trees.is_finite(jnp.arange(4))
    assert trees.is_finite(jax.device_put(np.float32(2)))
