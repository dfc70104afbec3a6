# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""JAX's compilation cache: what one run has compiled, the next one loads.

A program's key in it holds the versions of JAX and XLA, and the device; of a
CPU also its instruction sets. So machines of different kinds may share one. It
must be shared with nobody who is not trusted: what is loaded from it is run.
"""

from collections.abc import Iterator
import contextlib
import errno
import os
import pathlib
import re
import sys

import jax
from jax import monitoring

# A bucket with its scheme, as of gs://bucket/folder.
_BUCKET = re.compile(r'\w+://[^/]+')
_BUCKET_FOLDER = 'jax_compilation_cache'
_USER_FOLDER = 'speculative_t5x/jax'
_LOADED = '/jax/compilation_cache/cache_hits'


def enable(output_dir: str) -> None:
  """Turns the cache on for this process, in the bucket where there is one.

  Does nothing where the user has chosen a folder, or none: the environment's
  JAX_COMPILATION_CACHE_DIR is set, be it to nothing, or
  JAX_ENABLE_COMPILATION_CACHE is false. Nor does it for a second job of a
  process: the first one's folder holds. Where the user's folder cannot be
  written to, a line on stderr says so, and everything is compiled.

  Args:
    output_dir: where a job writes. The cache lies in its bucket, so that other
      workers and later machines share it; for a path on this machine in the
      user's cache folder.
  """
  if not jax.config.jax_enable_compilation_cache:
    return
  if jax.config.jax_compilation_cache_dir is not None:
    return
  if bucket := _BUCKET.match(output_dir):
    jax.config.update(
        'jax_compilation_cache_dir', f'{bucket[0]}/{_BUCKET_FOLDER}'
    )
    # XLA's own cache beside it, of tuned GPU kernels, knows no buckets, and
    # fails there.
    jax.config.update('jax_persistent_cache_enable_xla_caches', 'none')
    return
  try:
    folder = _user_folder()
    _check_writable(folder)
  except (OSError, RuntimeError) as error:  # of a home that is not known
    print(
        f'Compiling without a cache, whose folder cannot be written to: {error}'
        ' JAX_COMPILATION_CACHE_DIR names another one.',
        file=sys.stderr,
    )
    return
  jax.config.update('jax_compilation_cache_dir', str(folder))


@contextlib.contextmanager
def watch() -> Iterator[list[str]]:
  """Lists the programs that are loaded meanwhile, and so not compiled.

  An item each, whoever chose the cache.
  """
  loaded = []

  def note(event: str, **_) -> None:
    if event == _LOADED:
      loaded.append(event)

  monitoring.register_event_listener(note)
  try:
    yield loaded
  finally:
    monitoring.unregister_event_listener(note)


def _user_folder() -> pathlib.Path:
  # The XDG base directory specification: empty is as good as unset.
  base = os.environ.get('XDG_CACHE_HOME') or '~/.cache'
  return pathlib.Path(base).expanduser() / _USER_FOLDER


def _check_writable(folder: pathlib.Path) -> None:
  # JAX would warn again for each program.
  folder.mkdir(parents=True, exist_ok=True)
  if not os.access(folder, os.W_OK | os.X_OK):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
