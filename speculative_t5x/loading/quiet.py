# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps other libraries from printing log lines and opening accelerators."""

from collections.abc import Iterator
import contextlib
import glob
import os
import sys

import jax
from jax.extend import backend

# Device files of TPU chips on Linux; which one depends on the generation.
_TPU_DEVICES = ('/dev/accel*', '/dev/vfio/[0-9]*')
# TPU variables that do not indicate a TPU. JAX sets the first one if it finds
# no chip, and importing libtpu sets the second one.
_NO_TPU_VARIABLES = (
    'TPU_SKIP_MDS_QUERY', 'TPU_LIBRARY_PATH', 'TPU_ML_PLATFORM',
    'TPU_ML_PLATFORM_VERSION', 'TPU_MIN_LOG_LEVEL', 'TPU_STDERR_LOG_LEVEL',
)  # fmt: skip


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
  """Discard output to the process's stderr; exceptions still propagate."""
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
  """Hide GPUs from TensorFlow, which would reserve their memory.

  TensorFlow is used only to read and tokenize. Does nothing if it is not
  imported, or if it has initialised its devices already; the caller has chosen
  them then.
  """
  if tensorflow := sys.modules.get('tensorflow'):
    with contextlib.suppress(RuntimeError):
      tensorflow.config.set_visible_devices([], 'GPU')


def keep_libtpu_from_searching() -> None:
  """Keep JAX from opening a TPU on a machine without one.

  If libtpu is installed, as a compiler, it would search for a TPU and print
  errors. Does nothing if a device file, an environment variable or JAX's
  configured platforms indicate a TPU, so that errors in opening it are shown.
  """
  if jax.config.jax_platforms or _may_have_tpu():
    return
  with contextlib.suppress(RuntimeError):  # the backend is in use already
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
