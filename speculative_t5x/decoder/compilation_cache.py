# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Enables JAX's persistent compilation cache.

A program's cache key includes the versions of JAX and XLA, the device and, on a
CPU, its instruction sets, so machines of different kinds can share a cache.
Programs loaded from the cache are executed; only trusted users may be able to
write to it.
"""

from collections.abc import Callable, Iterator
import contextlib
import os
import pathlib
import re
import sys
import tempfile

import jax
from jax import monitoring

# A bucket with its scheme: gs://bucket of gs://bucket/folder.
_BUCKET = re.compile(r'\w+://[^/]+')
_BUCKET_FOLDER = 'jax_compilation_cache'
_USER_FOLDER = 'speculative_t5x/jax'
_LOADED = '/jax/compilation_cache/cache_hits'
_PROBE_BYTES = 2**20


def enable(output_dir: str = '') -> None:
  """Enable the cache for this process, in the output's bucket if it has one.

  There other workers and later machines share it; otherwise it is in the user's
  cache folder. Does nothing if the user has configured the cache: if the
  environment variable JAX_COMPILATION_CACHE_DIR is set, even to an empty value,
  or if JAX_ENABLE_COMPILATION_CACHE is false. In a second job of a process the
  folder of the first stays in force. If the folder cannot be written to, as on
  a full disk, prints a line on stderr and leaves the cache off.
  """
  if not jax.config.jax_enable_compilation_cache:
    return
  if jax.config.jax_compilation_cache_dir is not None:
    return
  if bucket := _BUCKET.match(output_dir):
    jax.config.update(
        'jax_compilation_cache_dir', f'{bucket[0]}/{_BUCKET_FOLDER}'
    )
    # XLA's own cache, of tuned GPU kernels, fails on buckets.
    jax.config.update('jax_persistent_cache_enable_xla_caches', 'none')
    return
  try:
    folder = _user_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='check', dir=folder) as empty:
      # As much as a few programs take, because JAX would print a warning for
      # every program that it cannot write.
      (pathlib.Path(empty) / 'file').write_bytes(bytes(_PROBE_BYTES))
  except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
    print(
        'Compiling without a cache, because its folder cannot be written to:'
        f' {error} Set JAX_COMPILATION_CACHE_DIR to choose another folder.',
        file=sys.stderr,
    )
    return
  jax.config.update('jax_compilation_cache_dir', str(folder))
  # Small programs too, of which a job has dozens: reading one from a local
  # folder takes less time than compiling it.
  jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)


@contextlib.contextmanager
def watch() -> Iterator[list[str]]:
  """Yield a list that grows by one item per program loaded from the cache."""
  loaded = []

  def note(event: str, **_) -> None:
    if event == _LOADED:
      loaded.append(event)

  monitoring.register_event_listener(note)
  try:
    yield loaded
  finally:
    monitoring.unregister_event_listener(note)


def compile_seconds(run: Callable[[], float]) -> float | None:
  """Return what a first call takes longer than a second one, in seconds.

  `run` makes the call, and returns its seconds. None if JAX's compilation cache
  had one of its programs.
  """
  with watch() as loaded:
    first = run()
  second = run()
  return None if loaded else max(first - second, 0.0)


def _user_folder() -> pathlib.Path:
  # In the XDG base directory specification, empty means unset.
  base = os.environ.get('XDG_CACHE_HOME') or '~/.cache'
  return pathlib.Path(base).expanduser() / _USER_FOLDER
