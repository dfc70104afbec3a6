# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The state of the process that commands change, and tests must not inherit."""

import sys

import gin
import jax

# Tasks that gin files register, and that no import does. Those that begin with
# `test_` are removed after each test, too.
TASKS = frozenset(
    [
        'multi30k_ende', 'wmt_ende', 'cnn_dailymail', 'xsum', 'decodes',
        'lm1b', 'multi30k_captions',
    ]
)  # fmt: skip
_READERS = list(gin.config._FILE_READERS)
_SEARCH_PATHS = list(gin.config._LOCATION_PREFIXES)
_PLATFORMS = jax.config.jax_platforms


def reset() -> None:
  """Restore the initial state of gin, JAX's platform and the tasks."""
  gin.clear_config()
  gin.config._FILE_READERS[:] = _READERS
  gin.config._LOCATION_PREFIXES[:] = _SEARCH_PATHS
  if jax.config.jax_platforms != _PLATFORMS:
    jax.config.update('jax_platforms', _PLATFORMS)
  seqio = sys.modules.get('seqio')
  if seqio:
    for name in list(seqio.TaskRegistry.names()):
      if name in TASKS or name.startswith('test_'):
        seqio.TaskRegistry.remove(name)
