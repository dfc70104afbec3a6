# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settles what holds for the whole process of a command, and its devices.

Only a program that owns its process calls this; no other module changes it.
"""

from collections.abc import Iterator
import contextlib
import glob
import os
import sys
import threading

import jax
from jax.extend import backend

_STREAMS = 'stdin', 'stdout', 'stderr'
# Device files of TPU chips on Linux; which one depends on the generation.
_TPU_DEVICES = ('/dev/accel*', '/dev/vfio/[0-9]*')
# TPU variables that do not indicate a TPU. JAX sets the first one if it finds
# no chip, and importing libtpu sets the second one.
_NO_TPU_VARIABLES = (
    'TPU_SKIP_MDS_QUERY', 'TPU_LIBRARY_PATH', 'TPU_ML_PLATFORM',
    'TPU_ML_PLATFORM_VERSION', 'TPU_MIN_LOG_LEVEL', 'TPU_STDERR_LOG_LEVEL',
)  # fmt: skip
_WAIT_S = 110  # JAX waits 300 for other hosts, and libtpu without a limit
_opened = set()  # numbers of streams that were closed
_SEED = 0  # of what TensorFlow draws in preprocessors


def open_streams() -> None:
  """Open the standard streams that are closed, as cron and daemons may.

  The next file that is opened would take the number of a closed stream, and get
  what C++ libraries print to that stream.
  """
  for number, name in enumerate(_STREAMS):
    try:
      os.fstat(number)
    except OSError:
      # The lowest free number, for the programs that this one starts too.
      os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
      _opened.add(number)
    if getattr(sys, name) is None:
      mode = 'w' if number else 'r'
      setattr(sys, name, open(number, mode, closefd=False))


def check_stdout() -> None:
  """Raise OSError if what is printed goes nowhere, as stdout was closed."""
  if _STREAMS.index('stdout') in _opened:
    raise OSError(
        'The output would be printed to the standard output, which is closed.'
        ' Open it (`> file`), or give an output folder if the job has one.'
    )


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


@contextlib.contextmanager
def limited(remedy: str) -> Iterator[None]:
  """End the process if the context takes longer than two minutes.

  It prints the remedy: sentences that tell the user what to do.
  """
  waiting = threading.Timer(_WAIT_S, _give_up, [remedy])
  waiting.start()
  try:
    yield
  finally:
    waiting.cancel()


def open_devices() -> None:
  """Open the devices that JAX_PLATFORMS asks for; without it do nothing.

  The process ends if that takes longer than two minutes, as on one host of a
  slice, where libtpu waits for the other hosts.
  """
  platforms = jax.config.jax_platforms or 'cpu'
  if platforms == 'cpu':
    return
  with limited(
      'The devices did not open. If the machine has several hosts, start the'
      ' program on all of them at the same time (docs/t5x.md#several-hosts).'
  ):
    try:
      jax.devices()
    except (RuntimeError, AssertionError) as error:  # of an unknown platform
      reason = str(error).partition(' (set JAX_PLATFORMS')[0].rstrip('.')
      remedy = "JAX's plugin is installed (jax[cuda12] or jax[cuda13])"
      if 'tpu' in platforms.split(','):
        remedy = 'this is a TPU VM, that requirements-tpu.txt is installed'
      raise RuntimeError(
          f'JAX_PLATFORMS={platforms} asks for devices, and JAX opens none here'
          f' ({reason or "there is no such platform"}). Check that {remedy},'
          ' and that no other process uses them. JAX_PLATFORMS=cpu runs on the'
          ' CPU.'
      ) from error


def _give_up(remedy: str) -> None:
  """End the process, whose main thread waits in C++."""
  print(
      f'error: Nothing happened for {_WAIT_S} s. {remedy}',
      file=sys.stderr,
      flush=True,
  )
  os._exit(1)
