# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Configures a job by gin and runs it."""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import importlib
import re

import gin
import jax

from speculative_t5x import extras
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import gin_text
from speculative_t5x.jobs.command_line import kinds
from speculative_t5x.jobs.command_line import macro_names
from speculative_t5x.jobs.command_line import process
from speculative_t5x.jobs.outputs import training_settings
from speculative_t5x.loading import quiet
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

# What gin writes behind the message of an error within a function that it calls
CALL = "\n  In call to configurable '"
# A function, its message, and its scope, if an argument of its call is missing
_MISSING = re.compile(
    rf"((\w+)(?:\.__init__)?\(\) missing .*)(?:\n.*)*?{CALL}\2'.*\)(.*)"
)


def configure(command: commands.CommandLine) -> Callable[[], None]:
  """Read the gin files of a command and return what runs its job."""
  if command.job.on_host:
    # JAX would wait for an accelerator that another process uses.
    jax.config.update('jax_platforms', 'cpu')
  process.keep_libtpu_from_searching()
  path = f'speculative_t5x.jobs.{command.job.function}'
  module, _, name = path.rpartition('.')
  with quiet_tensorflow():
    job = getattr(importlib.import_module(module), name)
  gin.clear_config()  # removes the config of an earlier command
  for name in command.job.optional:
    gin.parse_config(f'{name} = None')
  for name in command.gin_files:
    for path, text in gin_text.texts(name, command.folders):
      with _gin_errors_in(str(path)), quiet_tensorflow():
        gin.parse_config(text)
  for name, value in command.bindings:
    with _gin_errors_in(f'--gin.{name}={value}'):
      gin.parse_config(f'{name} = {value}')
  _check_values(command.job)
  if _settings().get('MIXTURE_OR_TASK_NAME', 'None') != 'None':
    # The job would load TensorFlow, where it is not kept quiet and settled.
    with quiet_tensorflow():
      importlib.import_module('speculative_t5x.tasks.examples')
  _register_check()
  gin.finalize()
  return functools.partial(_run, command.job, gin.get_configurable(job))


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


@functools.cache  # hooks stay; T5X's scripts, which do without, run elsewhere
def _register_check() -> None:
  """Have gin check the kinds of all settings when it finalizes them."""
  gin.config.register_finalize_hook(kinds.check)


def _settings() -> dict[str, str]:
  """Return the values of all settings by name, as gin writes them."""
  # One line for each; gin rules lines of this length between them.
  lines = gin.config_str(max_line_length=10**5).splitlines()
  pairs = (line.split(' = ', 1) for line in lines if not line.startswith('#'))
  return dict(pair for pair in pairs if len(pair) == 2)


def _check_values(job: commands.Job) -> None:
  """Check that every macro that is required or used has a value."""
  settings = _settings()
  required = [k for k, v in settings.items() if v == commands.REQUIRED]
  used = set().union(*map(gin_text.macros_in, settings.values()))
  unset = sorted(used - settings.keys())
  hints = [(name, macro_names.provider_hint(name)) for name in unset]
  if required:
    own = {each.upper(): f'--{each}=...' for each in job.flags}
    flags = ' '.join(own.get(x, f'--gin.{x}=...') for x in required)
    raise commands.UsageError(
        f'{", ".join(required)} must be set: {flags}, or in a gin file.'
        + ''.join(f' {x} must be set too.{hint}' for x, hint in hints if hint)
    )
  for name, hint in hints:
    remedy = ' Correct its name, or add the gin file that sets it.'
    raise commands.UsageError(
        f'The macro {name} is used but has no value.{hint or remedy}'
    )


def _run(command: commands.Job, job: Callable) -> None:
  """Run a configured job."""
  macro = f'{command.output_macro}/macro'
  output = gin.get_bindings(macro).get('value')  # None without a folder
  if output is None and command.prints:
    process.check_stdout()
  settings = _settings()
  if settings.get('CLUSTER', 'None') != 'None':
    # Its processes decode, one of which may need the devices of this machine.
    jax.config.update('jax_platforms', 'cpu')
  elif not command.on_host:
    # Only then, because counting processes opens the devices, which some parts
    # of the job `paper` do not need.
    if jax.distributed.is_initialized():
      sharding.check_one_process()
    process.open_devices()
    compilation_cache.enable(str(output))
  if command.may_change is not None:
    resolved = settings
    if settings.get('DTYPE') == 'None':  # another device must not go on
      resolved = settings | {'DTYPE': repr(chips.suited_dtype())}
    training_settings.keep_settings(output, resolved, command.may_change)
  try:
    # What a job imports may be known to gin, as all of T5X.
    with gin.unlock_config():
      job()
  except TypeError as error:
    if (missing := _MISSING.match(str(error))) is None:
      raise  # a bug
    raise commands.UsageError(
        f'{missing[1]}{missing[3]}. Add the gin file that sets it.'
    ) from error
  except ranges.ArgumentError as error:
    text = str(error).partition(CALL)[0]
    raise ValueError(_in_macros(text, error.arguments, settings)) from error


def _in_macros(
    text: str, arguments: Mapping[str, object], settings: Mapping[str, str]
) -> str:
  """Return a message that calls arguments by the macros that set them."""
  for argument, value in arguments.items():
    macros = {
        setting.removeprefix('%')
        for name, setting in settings.items()
        if name.rpartition('.')[2] == argument and setting.startswith('%')
    }
    if len(macros) > 1:  # of several models
      macros = {x for x in macros if settings.get(x) == repr(value)}
    if len(macros) == 1:
      text = re.sub(rf'\b{argument}\b', macros.pop(), text)
  return text
