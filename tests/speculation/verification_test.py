# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the edges of acceptance; `rules_test.py` enumerates the rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import verification


@pytest.mark.usefixtures('strict_types')
class TestAcceptance:

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.float64])
  def test_equal_probabilities_are_always_accepted(self, dtype):
    with jax.enable_x64(dtype == jnp.float64):
      rng = np.random.default_rng(20)
      probs = jnp.asarray(10 ** -rng.uniform(0, 30, 1000), dtype)
      for uniform in (0.0, 0.5, 1 - 2.0**-24):
        uniforms = jnp.full(probs.shape, uniform, jnp.float32)
        assert verification.acceptance(probs, probs, uniforms).all()

  def test_probability_zero_of_either_is_never_accepted(self):
    """Logits that are not finite have an argmax of no probability."""
    zeros, probs = jnp.zeros(3), jnp.array([0.5, 1.0, 0.0])
    assert not verification.acceptance(zeros, probs, zeros).any()
    assert not verification.acceptance(probs, zeros, zeros).any()

  def test_boundary_is_rejected(self):
    """The half-open interval gives exactly the probability p / q."""
    accepted = verification.acceptance(
        jnp.array([0.25, 0.25]),
        jnp.array([0.5, 0.5]),
        jnp.array([0.5, np.nextafter(np.float32(0.5), np.float32(0))]),
    )
    np.testing.assert_array_equal(accepted, [False, True])
