# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What every test runs under."""

import gc

from tests import cheap_compilation

cheap_compilation.set_up()  # before JAX is imported

import jax  # noqa: E402
import pytest  # noqa: E402

from speculative_t5x.measurement import step_times  # noqa: E402
from tests import command_state  # noqa: E402
from tests import compilation  # noqa: E402
from tests import process_state  # noqa: E402


@pytest.hookimpl(trylast=True)  # after they were shuffled
def pytest_collection_modifyitems(items):
  """Puts the longest tests first, that none is waited for at the end."""
  items.sort(key=lambda item: item.get_closest_marker('own_process') is None)


def pytest_collection_finish():
  """Collects garbage rarely: a sixth of the tests' time, with JAX's traces."""
  gc.freeze()
  gc.set_threshold(50_000, 20, 10)


@pytest.fixture(autouse=True, scope='module')
def _module_keeps_process_state(tmp_path_factory):
  """As for a test: what a module's own fixtures set up, they take back."""
  with process_state.kept(tmp_path_factory.getbasetemp()):
    yield


@pytest.fixture(autouse=True)
def _test_keeps_process_state(tmp_path_factory):
  """A test that leaves the process changed fails, and not the next one."""
  with process_state.kept(tmp_path_factory.getbasetemp()):
    yield
    command_state.reset()


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


@pytest.fixture(autouse=True, scope='session')
def _short_loops():
  """Parts are timed over few steps, since no time decides a test."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(step_times, '_LOOP_S', 0.0)
    yield


@pytest.fixture
def optimized():
  """Programs compiled well, for tests whose running costs more than that."""
  with compilation.optimized():
    yield
