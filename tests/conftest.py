# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every test runs under."""

from tests import cheap_compilation

cheap_compilation.set_up()  # before JAX is imported

import jax  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture
def strict_types():
  """Ranks and dtypes never promoted silently, for tests of the maths."""
  with jax.numpy_rank_promotion('raise'), jax.numpy_dtype_promotion('strict'):
    yield


@pytest.fixture
def float64():
  """64-bit types, so that laws can be compared to rounding of float64."""
  with jax.enable_x64(True):
    yield
