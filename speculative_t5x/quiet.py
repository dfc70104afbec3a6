# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What other libraries are kept from: log lines, and accelerators."""

from collections.abc import Iterator
import contextlib
import glob
import os
import sys

import jax
from jax.extend import backend

# Where Linux shows a TPU's chips: one of these, by their generation.
_TPU_DEVICES = ('/dev/accel*', '/dev/vfio/[0-9]*')
# Variables that say nothing of the machine. JAX sets the first one where it
# finds no chip, and libtpu the second one when it is imported.
_NO_TPU_VARIABLES = (
    'TPU_SKIP_MDS_QUERY', 'TPU_LIBRARY_PATH', 'TPU_ML_PLATFORM',
    'TPU_ML_PLATFORM_VERSION', 'TPU_MIN_LOG_LEVEL', 'TPU_STDERR_LOG_LEVEL',
)  # fmt: skip


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
  """Drops what is written to the process's stderr; exceptions still pass."""
  sys.stderr.flush()
  kept = os.dup(2)
  with open(os.devnull, 'wb') as nowhere:
    os.dup2(nowhere.fileno(), 2)
  try:
    yield
  finally:
    sys.stderr.flush()
    os.dup2(kept, 2)
    os.close(kept)


def keep_tensorflow_off_accelerators() -> None:
  """It would take the memory of a GPU, and only reads and tokenizes here.

  Does nothing where it is not imported, or in use already: its devices are the
  caller's choice then.
  """
  if tensorflow := sys.modules.get('tensorflow'):
    with contextlib.suppress(RuntimeError):
      tensorflow.config.set_visible_devices([], 'GPU')


def keep_libtpu_from_searching() -> None:
  """Has JAX open no TPU where there is none.

  Where libtpu is installed, as a compiler, it would look for one and print what
  it did not find. Does nothing where a device, a variable or JAX's own choice
  of platforms says that there may be one, so that a TPU which cannot be opened
  is heard of.
  """
  if jax.config.jax_platforms or _may_have_tpu():
    return
  with contextlib.suppress(RuntimeError):  # it is in use already
    backend.register_backend_factory('tpu', _no_tpu)


def _may_have_tpu() -> bool:
  variables = {name for name in os.environ if name.startswith('TPU_')}
  return bool(
      variables.difference(_NO_TPU_VARIABLES)
      or 'JAX_FORCE_TPU_INIT' in os.environ
      or any(map(glob.glob, _TPU_DEVICES))
  )


def _no_tpu():
  raise RuntimeError('There is no TPU on this machine.')
