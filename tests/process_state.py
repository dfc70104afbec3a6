# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The state of the process that every test must leave unchanged.

Tests run in any order in one process, and would see what another test changed.
"""

from collections.abc import Iterator, Mapping
import contextlib
import os
import pathlib
import signal
import sys
from typing import Any

import gin
import jax
import jaxtyping

_SIGNALS = (
    signal.SIGALRM, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT,
    signal.SIGPIPE, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
    signal.SIGUSR2,
)  # fmt: skip
_OF_PYTEST = 'PYTEST_CURRENT_TEST'  # the test that is running
_MISSING = object()
# Tasks that gin files register, and that no import does. Those that begin with
# `test_` are removed after each test, too.
TASKS = frozenset(
    [
        'multi30k_ende', 'wmt_ende', 'cnn_dailymail', 'xsum', 'decodes',
        'spec_bench_translation', 'spec_bench_summarization', 'lm1b',
        'multi30k_captions',
    ]
)  # fmt: skip
_READERS = list(gin.config._FILE_READERS)
_SEARCH_PATHS = list(gin.config._LOCATION_PREFIXES)
_PLATFORMS = jax.config.jax_platforms

State = Mapping[str, Mapping[Any, Any]]


@contextlib.contextmanager
def unchanged(temporary: pathlib.Path) -> Iterator[None]:
  """Fail if the code within the context changes the state."""
  before = capture()
  yield
  lines = changes(before, capture(), temporary)
  assert not lines, '\n'.join(['left behind:', *lines])


def reset() -> None:
  """Restore the initial state of gin, JAX's platform and the tasks."""
  gin.clear_config()
  gin.config._FILE_READERS[:] = _READERS
  gin.config._LOCATION_PREFIXES[:] = _SEARCH_PATHS
  if jax.config.jax_platforms != _PLATFORMS:
    jax.config.update('jax_platforms', _PLATFORMS)
  seqio = sys.modules.get('seqio')
  if seqio:
    for name in filter(_is_of_a_test, list(seqio.TaskRegistry.names())):
      seqio.TaskRegistry.remove(name)


def capture() -> State:
  """Return the state of the process, in parts."""
  return {
      'sys.modules': dict(sys.modules),
      'sys.path': dict(enumerate(sys.path)),
      'sys.argv': {'': list(sys.argv)},
      'the environment': {
          k: v for k, v in os.environ.items() if k != _OF_PYTEST
      },
      'the working folder': {'': os.getcwd()},
      "JAX's configuration": dict(jax.config.values),
      "jaxtyping's configuration": {
          'jaxtyping_disable': jaxtyping.config.jaxtyping_disable
      },
      'signal handlers': {
          each.name: signal.getsignal(each) for each in _SIGNALS
      },
      "seqio's tasks": _seqio_tasks(),
      "seqio's folder of data sets": {'': _tfds_data_dir()},
  }


def changes(before: State, after: State, temporary: pathlib.Path) -> list[str]:
  """Describe what has changed, one line per change.

  A module that is imported for the first time is no change, nor is what it
  does to the environment, unless it lies in a folder of temporary files.
  """
  if before == after:  # the usual case, and fast
    return []
  imported = after['sys.modules'].keys() - before['sys.modules'].keys()
  lines = [
      f'sys.modules: {name} of a temporary folder was added'
      for name in sorted(imported)
      if _lies_in(after['sys.modules'][name], temporary)
  ]
  for part, values in before.items():
    lines += _part_changes(part, values, after[part], bool(imported))
  return lines


def _part_changes(part, before, after, has_imports: bool) -> list[str]:
  # The modules themselves are looked at by the caller, and what they add (a
  # variable of the environment, a task) stays as long as they do.
  may_add = part == 'sys.modules' or has_imports
  names = before.keys() if may_add else before.keys() | after.keys()
  return [
      f'{part}: {name} was {_told(before, name)}, is {_told(after, name)}'
      for name in sorted(names)
      if before.get(name, _MISSING) != after.get(name, _MISSING)
  ]


def _told(values, name) -> str:
  return 'missing' if name not in values else repr(values[name])[:80]


def _lies_in(module: Any, folder: pathlib.Path) -> bool:
  file = getattr(module, '__file__', None)
  return isinstance(file, str) and folder in pathlib.Path(file).parents


def _seqio_tasks() -> dict[str, Any]:
  providers = sys.modules.get('seqio.dataset_providers')
  if providers is None:
    return {}
  registries = (providers.TaskRegistry, providers.MixtureRegistry)
  found = {k: v for each in registries for k, v in each._REGISTRY.items()}
  # A fixture of a module may run a command: see `reset`.
  return {k: v for k, v in found.items() if not _is_of_a_test(k)}


def _is_of_a_test(task: str) -> bool:
  return task in TASKS or task.startswith('test_')


def _tfds_data_dir() -> str | None:
  utils = sys.modules.get('seqio.utils')
  return utils and utils._TFDS_DATA_DIR_OVERRIDE
