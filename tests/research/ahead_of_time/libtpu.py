# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Helpers of tests that need the compiler for TPUs, which may be missing."""

from collections.abc import Iterator
import contextlib
import functools
import importlib.metadata

import pytest

from speculative_t5x.research.ahead_of_time import topology
from tests import compilation


def _is_installed() -> bool:
  try:
    importlib.metadata.version('libtpu')
  except importlib.metadata.PackageNotFoundError:
    return False
  return True


needed = pytest.mark.skipif(
    not _is_installed(), reason='libtpu is not installed'
)


@contextlib.contextmanager
def environment() -> Iterator[None]:
  """Set the variables that libtpu needs within the context.

  Programs are not written to JAX's cache: without a TPU it cannot read them.
  """
  with (
      pytest.MonkeyPatch.context() as patch,
      compilation.unwritten(),
  ):
    for name, value in topology.TPU_ENVIRONMENT.items():
      patch.setenv(name, value)
    yield


@functools.cache
def describe(name: str) -> topology.Topology:
  """Return a topology, described once per process, within `environment`."""
  return topology.describe(name)
