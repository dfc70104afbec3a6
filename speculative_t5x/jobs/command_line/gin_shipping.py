# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The configuration of a command, on its way to other processes."""

from collections.abc import Callable, Mapping
import functools
import os
import pathlib
import sys
import tempfile

import gin

from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import gin_job
from speculative_t5x.jobs.command_line import process


def configuration() -> Callable[[], None]:
  """Return what configures another process as this one is, pickled with it.

  It has the bindings of gin, and the modules of the current folder that gin
  files have imported, as those of a user's own tasks.
  """
  text = gin.config_str(max_line_length=10**5)
  return functools.partial(_configure, text, _own_modules())


def _own_modules() -> dict[str, str]:
  """Return the texts of imported modules of the current folder, by path."""
  folder, found = pathlib.Path.cwd(), {}
  for name, module in list(sys.modules.items()):
    file = pathlib.Path(getattr(module, '__file__', None) or os.devnull)
    place = pathlib.PurePath(*name.split('.'))
    paths = place.with_suffix('.py'), place / '__init__.py'
    for path in paths:
      # Those of an environment in the folder have a longer path than name.
      if file == folder / path and place.parts[0] != 'speculative_t5x':
        found[str(path)] = file.read_text(encoding='utf-8')
  return found


def _configure(text: str, modules: Mapping[str, str]) -> None:
  if modules:
    folder = pathlib.Path(tempfile.mkdtemp(prefix='speculative_t5x_'))
    for path, module in modules.items():
      (folder / path).parent.mkdir(parents=True, exist_ok=True)
      (folder / path).write_text(module, encoding='utf-8')
    sys.path.insert(0, str(folder))  # a node may have others of the same name
  process.keep_libtpu_from_searching()
  with gin_job.quiet_tensorflow():
    gin.parse_config(text)
  # In the user's folder of each node: its workers share what they compile.
  compilation_cache.enable()
