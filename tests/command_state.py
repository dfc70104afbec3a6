# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""State of the process that a command sets, and that the next command sees."""

import sys

import gin
import jax

# Tasks that gin files register, and that no import does.
TASKS = frozenset(
    [
        'multi30k_ende', 'wmt_ende', 'cnn_dailymail', 'xsum',
        'spec_bench_translation', 'spec_bench_summarization',
    ]
)  # fmt: skip
_READERS = list(gin.config._FILE_READERS)
_SEARCH_PATHS = list(gin.config._LOCATION_PREFIXES)
_PLATFORMS = jax.config.jax_platforms


def reset() -> None:
  """Restores the initial state of gin, JAX's platform and the tasks."""
  gin.clear_config()
  gin.config._FILE_READERS[:] = _READERS
  gin.config._LOCATION_PREFIXES[:] = _SEARCH_PATHS
  if jax.config.jax_platforms != _PLATFORMS:
    jax.config.update('jax_platforms', _PLATFORMS)
  seqio = sys.modules.get('seqio')
  if seqio:
    for name in TASKS & set(seqio.TaskRegistry.names()):
      seqio.TaskRegistry.remove(name)
