# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every test runs under."""

import atexit
import os
import shutil
import tempfile


def _compile_cheaply() -> None:
  """Sets what JAX reads when it is imported, here and in child processes.

  Compiling is most of what the tests cost. So programs are optimized little,
  and what one process compiles the others read: workers, and commands that
  tests start. A cache folder named by whoever runs the tests is kept, and
  speeds up their next run.
  """
  os.environ.setdefault('JAX_DISABLE_MOST_OPTIMIZATIONS', '1')
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0')
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')
  if 'JAX_COMPILATION_CACHE_DIR' not in os.environ:
    folder = tempfile.mkdtemp(prefix='speculative_t5x_tests_')
    os.environ['JAX_COMPILATION_CACHE_DIR'] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


_compile_cheaply()

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
