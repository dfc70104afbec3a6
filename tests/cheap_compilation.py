# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Variables under which the tests' programs cost little to compile.

Compiling is most of what the tests cost. So programs are optimized little, and
what one process compiles the others read: workers, and commands that tests
start. A cache folder named by whoever runs the tests is kept, and speeds up
their next run. Tests that read optimized programs lie in `optimized`.
"""

import atexit
import importlib.metadata
import os
import shutil
import tempfile

# Half of what an unoptimized program costs to compile on a CPU. Later versions
# of XLA have no other way to emit fusions, and stop at flags that they do not
# know.
_CHEAP_FUSIONS = '--xla_cpu_use_fusion_emitters=false'


def set_up() -> None:
  """Sets what JAX reads when it is imported, here and in child processes."""
  if os.environ.setdefault('JAX_DISABLE_MOST_OPTIMIZATIONS', '1') == '1':
    _fuse_cheaply()
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0')
  os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')
  if 'JAX_COMPILATION_CACHE_DIR' not in os.environ:
    folder = tempfile.mkdtemp(prefix='speculative_t5x_tests_')
    os.environ['JAX_COMPILATION_CACHE_DIR'] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _fuse_cheaply() -> None:
  flags = os.environ.get('XLA_FLAGS', '')
  is_known = importlib.metadata.version('jaxlib').startswith('0.10.')
  if is_known and _CHEAP_FUSIONS not in flags:
    os.environ['XLA_FLAGS'] = f'{flags} {_CHEAP_FUSIONS}'.strip()
