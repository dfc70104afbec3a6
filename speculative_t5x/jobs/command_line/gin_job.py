# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Configures a job by gin and runs it, also in other processes."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import importlib
import os
import pathlib
import sys
import tempfile

import gin
import jax

from speculative_t5x import extras
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import process
from speculative_t5x.jobs.command_line import settings
from speculative_t5x.jobs.outputs import training_settings
from speculative_t5x.loading import quiet
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

# What gin writes behind the message of an error within a function that it calls
CALL = "\n  In call to configurable '"

# Of buckets, too.
gin.config.register_file_reader(
    lambda name: user_paths.expand(name).open(encoding='utf-8'),
    lambda name: user_paths.expand(name).is_file(),
)


def run(todo: list[commands.CommandLine]) -> None:
  """Run jobs one after another; each setting must be used by one of them."""
  names, used = set(), set()
  for command in todo:
    read(command)
    own, own_used = settings.set_and_used()
    names |= own - {*command.job.optional}
    used |= own_used
  settings.check_used(names, used)
  for command in todo:
    if len(todo) > 1:
      read(command)
    _run(command.job)


def read(command: commands.CommandLine) -> None:
  """Have gin read the files and the settings of a command."""
  if command.job.on_host:
    # JAX would wait for an accelerator that another process uses.
    jax.config.update('jax_platforms', 'cpu')
  process.keep_libtpu_from_searching()
  _function(command.job)  # which the files may name
  gin.clear_config()  # removes the config of an earlier command
  for folder in command.folders:
    gin.add_config_file_search_path(folder)
  for name in command.job.optional:
    gin.parse_config(f'{name} = None')
  for name in command.gin_files:
    with _gin_errors_in(name), quiet_tensorflow():
      gin.parse_config_file(name)
  for name, value in command.bindings:
    with _gin_errors_in(f'--gin.{name}={value}'):
      gin.parse_config(f'{name} = {value}')
  settings.check_kinds()
  if settings.value_of('MIXTURE_OR_TASK_NAME') is not None:
    # The job would load TensorFlow, where it is not kept quiet and settled.
    with quiet_tensorflow():
      importlib.import_module('speculative_t5x.tasks.examples')


def _function(job: commands.Job):
  path = f'speculative_t5x.jobs.{job.function}'
  module, _, name = path.rpartition('.')
  with quiet_tensorflow():
    return getattr(importlib.import_module(module), name)


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
  """Keep TensorFlow quiet while the context imports it, and settle it.

  Stderr is discarded within the context: TensorFlow prints lines, partly about
  GPUs, before its logging is set up, and no variable turns them off.
  """
  with quiet.quiet_stderr():
    yield
    process.settle_tensorflow()


@contextlib.contextmanager
def _gin_errors_in(source: str) -> Iterator[None]:
  """Turn gin's errors to one line that names the file or flag."""
  try:
    yield
  except Exception as error:
    if isinstance(error, ImportError) and extras.missing(error):
      raise
    text = ' '.join(str(error).split()).rstrip('.')
    raise commands.UsageError(f'{source} cannot be read: {text}.') from error


def _texts() -> dict[str, str]:
  """Return the values of all settings by name, as gin writes them."""
  # One line for each; gin rules lines of this length between them.
  lines = gin.config_str(max_line_length=10**5).splitlines()
  pairs = (line.split(' = ', 1) for line in lines if not line.startswith('#'))
  return dict(pair for pair in pairs if len(pair) == 2)


def _run(job: commands.Job) -> None:
  function = _function(job)
  selector = f'{function.__module__}.{function.__name__}'
  settings.check_set(selector, job.flags)
  macro = f'{job.output_macro}/macro'
  output = gin.get_bindings(macro).get('value')  # None without a folder
  if output is None and job.output_macro:
    process.check_stdout()
  if settings.value_of('CLUSTER') is not None:
    # Its processes decode, one of which may need the devices of this machine.
    jax.config.update('jax_platforms', 'cpu')
  elif not job.on_host:
    # Only then, because counting processes opens the devices, which some parts
    # of the job `paper` do not need.
    if jax.distributed.is_initialized():
      sharding.check_one_process()
    process.open_devices()
    compilation_cache.enable(str(output))
  if job.may_change is not None:
    resolved = _texts()
    if resolved.get('DTYPE') == 'None':  # another device must not go on
      resolved |= {'DTYPE': repr(chips.suited_dtype())}
    training_settings.keep_settings(output, resolved, job.may_change)
  try:
    # What a job imports may be known to gin, as all of T5X.
    with gin.unlock_config():
      gin.get_configurable(function)()
  except ranges.ArgumentError as error:
    text = str(error).partition(CALL)[0]
    raise ValueError(settings.in_macros(text, error.arguments)) from error


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
  with quiet_tensorflow():
    gin.parse_config(text)
  # In the user's folder of each node: its workers share what they compile.
  compilation_cache.enable()
