# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compilations, counted and made cheap."""

from collections.abc import Iterator
import contextlib
import tempfile

import jax
from jax.experimental.compilation_cache import compilation_cache
import jaxtyping

_EVENT = '/jax/core/compile/backend_compile_duration'
_num_compiled = 0
_folder = tempfile.TemporaryDirectory()  # of all tests of a process


def _hear(event: str, *_, **unused) -> None:
  global _num_compiled
  _num_compiled += event == _EVENT


jax.monitoring.register_event_duration_secs_listener(_hear)


def count() -> int:
  """Programs compiled so far, those that `cheap` reads back included."""
  return _num_compiled


@contextlib.contextmanager
def cheap() -> Iterator[None]:
  """Programs are optimised little, and none of them twice.

  For tests in which no speed matters and much is compiled.
  """
  values = {
      'jax_disable_most_optimizations': True,
      'jax_compilation_cache_dir': _folder.name,
      'jax_persistent_cache_min_compile_time_secs': 0.0,
      'jax_persistent_cache_min_entry_size_bytes': -1,
  }
  before = {name: jax.config.values[name] for name in values}
  _configure(values)
  try:
    yield
  finally:
    _configure(before)


@contextlib.contextmanager
def unchecked_types() -> Iterator[None]:
  """JAX puts other things than arrays into the trees that it lowers."""
  jaxtyping.config.update('jaxtyping_disable', True)
  try:
    yield
  finally:
    jaxtyping.config.update('jaxtyping_disable', False)


def _configure(values) -> None:
  for name, value in values.items():
    jax.config.update(name, value)
  compilation_cache.reset_cache()  # or the last folder stays in use
