# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures and hooks for all tests."""

import gc
import os

from tests import cheap_compilation

cheap_compilation.set_up()  # before JAX is imported
os.environ['HF_HUB_OFFLINE'] = '1'  # a path with a typo may be a name there

import jax  # noqa: E402
import pytest  # noqa: E402

from speculative_t5x.networks import prompts  # noqa: E402
from speculative_t5x.research.measurement import step_times  # noqa: E402
from tests import compilation  # noqa: E402
from tests import process_state  # noqa: E402
from tests import shared as shared_lib  # noqa: E402


@pytest.hookimpl(trylast=True)  # after the shuffling
def pytest_collection_modifyitems(items):
  """Run the longest tests first, so that none remains at the end."""
  items.sort(key=lambda item: item.get_closest_marker('long') is None)


def pytest_collection_finish():
  """Collect garbage rarely, which saves a sixth of the tests' time."""
  gc.freeze()
  gc.set_threshold(50_000, 20, 10)


@pytest.fixture(autouse=True, scope='module')
def _module_frees_its_programs():
  yield
  compilation.tidy()


@pytest.fixture(autouse=True)
def _test_leaves_no_state():
  """Restore what commands change in the process."""
  yield
  process_state.reset()
  compilation.collect_if_grown()


@pytest.fixture(scope='session')
def shared():
  """Return the folder of shared test data."""
  folder = shared_lib.shared_folder()
  if folder is None:
    pytest.skip('no shared test data')
  return folder


@pytest.fixture
def strict_types():
  """Forbid implicit promotion of ranks and dtypes, for tests of formulas."""
  with jax.numpy_rank_promotion('raise'), jax.numpy_dtype_promotion('strict'):
    yield


@pytest.fixture(scope='module')
def unchecked_types():
  """Disable shape checks, for tests that lower programs."""
  with compilation.unchecked_types():
    yield


@pytest.fixture
def float64():
  """Enable 64-bit types, to compare distributions at float64 precision."""
  with jax.enable_x64(True):
    yield


@pytest.fixture(autouse=True, scope='session')
def _short_loops():
  """Time parts over few steps, because no test depends on times."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(step_times, '_LOOP_S', 0.0)
    yield


@pytest.fixture
def chunks_of_eight(monkeypatch):
  """Have decoders alone read prompts in several chunks."""
  monkeypatch.setattr(prompts, 'CHUNK', 8)


@pytest.fixture
def optimized():
  """Compile with optimizations, for tests that run for long."""
  with compilation.optimized():
    yield
