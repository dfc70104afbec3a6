# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts compilations, frees programs, and compiles with optimizations."""

from collections.abc import Iterator
import contextlib
import math
import pathlib

import jax
import jaxtyping

_EVENT = '/jax/core/compile/backend_compile_duration'
# Half of what Linux allows a process by default (vm.max_map_count).
_MOST_MAPS = 32_000
_num_compiled = 0


def _hear(event: str, *_, **unused) -> None:
  global _num_compiled
  _num_compiled += event == _EVENT


jax.monitoring.register_event_duration_secs_listener(_hear)


def count() -> int:
  """Returns the number of programs compiled so far, including cached ones."""
  return _num_compiled


def free_if_many() -> None:
  """Frees all programs if they take many of the process's memory maps.

  A program for CPUs takes several maps. The whole suite in one process would
  need more than Linux allows, and XLA crashes when it gets none.
  """
  maps = pathlib.Path('/proc/self/maps')
  if maps.exists() and maps.read_bytes().count(b'\n') > _MOST_MAPS:
    jax.clear_caches()


@contextlib.contextmanager
def optimized() -> Iterator[None]:
  """Compiles with the default optimizations within the context."""
  with _configured('jax_disable_most_optimizations', False):
    yield


@contextlib.contextmanager
def unwritten() -> Iterator[None]:
  """Keeps programs out of JAX's cache within the context."""
  with _configured('jax_persistent_cache_min_compile_time_secs', math.inf):
    yield


@contextlib.contextmanager
def _configured(name: str, value: bool | float) -> Iterator[None]:
  before = jax.config.values[name]
  jax.config.update(name, value)
  try:
    yield
  finally:
    jax.config.update(name, before)


@contextlib.contextmanager
def unchecked_types() -> Iterator[None]:
  """Disables shape checks: JAX puts values other than arrays into its trees."""
  jaxtyping.config.update('jaxtyping_disable', True)
  try:
    yield
  finally:
    jaxtyping.config.update('jaxtyping_disable', False)
