# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Environment variables that make compilation cheap for the tests.

Compilation takes most of the time of the tests. Programs are therefore compiled
with few optimizations, and programs that one process has compiled are read by
the others: by workers, and by commands that tests start. A cache folder that
the environment names is used, which makes the next test run faster, and so are
XLA_FLAGS that it names. Tests of optimized programs are in `optimized`.
"""

import atexit
import importlib.metadata
import os
import shutil
import tempfile

# XLA aborts for unknown flags.
_FLAGS = {
    # One module of code per program: each of up to 32 adds overhead.
    '--xla_cpu_parallel_codegen_split_count=1': '',
    # Half of what an unoptimized program costs to compile on a CPU: 2.3 CPU
    # seconds for a loop of tiny models. JAX 0.12, of Python 3.12, has
    # no other way to emit fusions and takes 4.7: none of its flags helps. To
    # trace and lower the loop takes 1.7 with either, small programs the same.
    '--xla_cpu_use_fusion_emitters=false': '0.10.',
}


def set_up() -> None:
  """Set variables that JAX reads on import, here and in child processes."""
  if os.environ.setdefault('JAX_DISABLE_MOST_OPTIMIZATIONS', '1') == '1':
    os.environ.setdefault('XLA_FLAGS', _flags())
  os.environ.setdefault('JAX_TRACEBACK_IN_LOCATIONS_LIMIT', '0')
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0')
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')
  if 'JAX_COMPILATION_CACHE_DIR' not in os.environ:
    folder = tempfile.mkdtemp(prefix='speculative_t5x_tests_')
    os.environ['JAX_COMPILATION_CACHE_DIR'] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _flags() -> str:
  jaxlib = importlib.metadata.version('jaxlib')
  known = [flag for flag, of in _FLAGS.items() if jaxlib.startswith(of)]
  return ' '.join(known)
