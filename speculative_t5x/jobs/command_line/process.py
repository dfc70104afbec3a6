# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settles what holds for the whole process of a command.

Only a program that owns its process calls this; no other module changes it.
"""

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
_SEED = 0  # of what TensorFlow draws in preprocessors


def find_own_modules() -> None:
  """Have modules of the current folder found, behind those that are installed.

  Gin files name tasks, drafters and networks of a user's own.
  """
  if not {'', os.getcwd()} & set(sys.path):
    sys.path.append(os.getcwd())


def settle_tensorflow() -> None:
  """Have TensorFlow, where it is imported, leave GPUs alone and draw in order.

  It only reads and tokenizes, and would reserve the memory of GPUs. Draws of
  preprocessors are the same in every process, so that a job that resumes meets
  the examples that it began with. TensorFlow has no narrower switch.
  """
  if tensorflow := sys.modules.get('tensorflow'):
    with contextlib.suppress(RuntimeError):  # its devices are in use already
      tensorflow.config.set_visible_devices([], 'GPU')
    tensorflow.random.set_seed(_SEED)
    tensorflow.config.experimental.enable_op_determinism()


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
