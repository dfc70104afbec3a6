# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts compilations, frees programs, and compiles with optimizations."""

from collections.abc import Iterator
import contextlib
import ctypes
import gc
import math
import os
import pathlib

import jax
import jaxtyping

_EVENT = '/jax/core/compile/backend_compile_duration'
# Half of what Linux allows a process by default (vm.max_map_count).
_MOST_MAPS = 32_000
_MOST_BYTES = 2e9
_MOST_GROWTH = 2e8
_num_compiled = 0
_collected_at = 0


def _hear(event: str, *_, **unused) -> None:
  global _num_compiled
  _num_compiled += event == _EVENT


jax.monitoring.register_event_duration_secs_listener(_hear)


def count() -> int:
  """Return the number of programs compiled so far, including cached ones."""
  return _num_compiled


def tidy() -> None:
  """Collect garbage, and free all programs if they take much memory.

  What remains is not looked at by later collections, which take a second each
  where hundreds of programs remain. A program for CPUs takes several memory
  maps and up to 100 MB. The whole suite in one process would need more maps
  than Linux allows, and XLA crashes when it gets none.
  """
  if _memory() > _MOST_BYTES or _maps() > _MOST_MAPS:
    gc.unfreeze()
    jax.clear_caches()
    gc.collect()
    _return_freed_memory()
  gc.collect()
  gc.freeze()


def collect_if_grown() -> None:
  """Collect programs that no test refers to, once memory has grown by much."""
  global _collected_at
  if _memory() > _collected_at + _MOST_GROWTH:
    gc.collect()
    _collected_at = _memory()


def _return_freed_memory() -> None:
  """Make the process smaller, or programs would be freed after each file."""
  libc = ctypes.CDLL(None)
  if hasattr(libc, 'malloc_trim'):  # not on macOS
    libc.malloc_trim(0)


def _memory() -> int:
  """Return the bytes that the process holds; 0 where Linux does not say."""
  path = pathlib.Path('/proc/self/statm')
  if not path.exists():
    return 0
  return int(path.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def _maps() -> int:
  path = pathlib.Path('/proc/self/maps')
  return path.read_bytes().count(b'\n') if path.exists() else 0


@contextlib.contextmanager
def optimized() -> Iterator[None]:
  """Compile with the default optimizations within the context."""
  with _configured('jax_disable_most_optimizations', False):
    yield


@contextlib.contextmanager
def unwritten() -> Iterator[None]:
  """Keep programs out of JAX's cache within the context."""
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
  """Disable shape checks: JAX puts values other than arrays into its trees."""
  jaxtyping.config.update('jaxtyping_disable', True)
  try:
    yield
  finally:
    jaxtyping.config.update('jaxtyping_disable', False)
