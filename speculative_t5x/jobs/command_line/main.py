# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `speculative-t5x`: runs a job that gin files configure.

This is the only module of the package that imports gin. Flags are T5X's:

  speculative-t5x eval --gin_file=configs/runs/demo.gin --gin.GAMMA=5
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import difflib
import functools
import importlib
import io
import itertools
import os
import pathlib
import re
import signal
import sys
import tokenize

import jax

import speculative_t5x
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import gin_text
from speculative_t5x.jobs.command_line import kinds
from speculative_t5x.jobs.outputs import kept_settings
from speculative_t5x.loading import quiet
from speculative_t5x.networks import sharding
from speculative_t5x.research import interruption

# TensorFlow, used only to read and tokenize, reads this when it is imported.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

_FILE_FLAG, _PATH_FLAG = '--gin_file=', '--gin_search_paths='
_OUTPUT_FLAG, _BINDING_PREFIX = '--output_dir=', '--gin.'
_OWN_FLAG = re.compile(r'--(\w+)=(.*)', re.DOTALL)
_BINDING_FLAG = re.compile(r'--gin\.([^=\s]+)=(.*)', re.DOTALL)
# Macros that the file of a job sets to their defaults.
_CHOICES = {'RULE', 'POLICY'}
# A word or a path, from which a shell removes quotes. After a slash there may
# be anything, for no other value has one outside of quotes.
_BARE_STRING = re.compile(
    r'-|[./~].*|\w[^\'"()\[\]{}%@]*(/.*)?', re.DOTALL
)

# The statuses that shells expect.
_INTERRUPTED, _PIPE_CLOSED = 128 + signal.SIGINT, 128 + signal.SIGPIPE

# Exceptions that gin raises for a file or a binding that it cannot read.
_GIN_ERRORS = (
    SyntaxError, LookupError, TypeError, AttributeError, ValueError,
    ImportError, NameError, OSError, tokenize.TokenError,
)  # fmt: skip
_REQUIRED = re.compile(r'^(\S+) = %gin\.REQUIRED$', re.MULTILINE)
_UNSET_MACRO = re.compile(r"No bindings specified for '(.+)/gin\.macro'")
_MISSING = re.compile(
    r'(\w+)(?:\.__init__)?\(\) missing \d+ required .*arguments?: (.+)'
    r"(?:\n.*)*?\n  In call to configurable '\1'"
)
_BAD_VALUE = re.compile(
    r"(\w+) must (?s:.*?)\n  In call to configurable '(\w+)' \(.*\)"
    r"(?: in scope '(.+)')?"
)
_NOT_IMPORTED = re.compile(
    r"'(\w+)' was not provided by an import statement"
    r"|No configurable matching reference '@(?:\w+/)*(\w+)\."
)
_NO_MODULE = re.compile(r"No module named '(\w+)'")
_NO_VALUE = ' Correct its name, or add the gin file that sets it.'
_SCHEME = re.compile(r"'(\w+://)'")
_FILE_LOCATION = re.compile(r'\n  In file "(.+)", line (\d+)')


class UsageError(ValueError):
  """The command line is not valid."""


@dataclasses.dataclass(frozen=True)
class _CommandLine:
  job: commands.Job
  function: str  # of the job's module
  gin_files: tuple[str, ...]
  search_paths: tuple[str, ...]
  bindings: tuple[tuple[str, str], ...]  # names and gin values


def main(argv: Sequence[str] | None = None) -> int:
  """Runs a command and returns its exit status.

  An invalid command line prints one error on stderr and returns status 2; other
  bad input returns status 1. An interrupt prints one line and returns status
  130. It ends with status 141, without a line, when the reader of its output
  has seen enough. Any other exception is a bug and keeps its traceback.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  _print_utf_8()
  try:
    if argv == ['--version']:
      print(f'speculative-t5x {speculative_t5x.__version__}', flush=True)
      return 0
    if not argv or {'-h', '--help'} & set(argv):
      print(_help(argv), flush=True)
      return 0 if argv else 2
    with interruption.remembered():
      todo = _parse(argv)
      _check_macros(todo)
      for command in todo:
        _configure(command)()
        interruption.check()
    sys.stdout.flush()
  except BrokenPipeError:
    # The reader has seen enough. Nothing is left to flush at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _PIPE_CLOSED
  except (UsageError, gin_text.GinFileError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 2
  except (ValueError, OSError, RuntimeError) as error:
    print(f'error: {_message(error)}', file=sys.stderr)
    return 1
  except Exception as error:
    if (message := _remote_message(error)) is None:
      raise
    print(f'error: {message}', file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    job = commands.JOBS.get(argv[0])
    kept = ' Finished work is kept; the same command resumes.'
    is_resumed = job is not None and job.is_resumed
    print(f'Interrupted.{kept if is_resumed else ""}', file=sys.stderr)
    return _INTERRUPTED
  return 0


def _print_utf_8() -> None:
  """Has stdout and stderr written as UTF-8 in every locale."""
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):  # not in a notebook
      # Names of files may hold bytes that are not UTF-8.
      stream.reconfigure(encoding='utf-8', errors='surrogateescape')


def _help(argv: list[str]) -> str:
  """Returns the help of a command or of its first named part.

  The help is the head comment of the gin file. Without a command, returns the
  overview of all commands.
  """
  job = commands.JOBS.get(argv[0]) if argv else None
  if job is None:
    return commands.overview()
  gin_file = job.gin_file
  if job.folder and (parts := [x for x in argv[1:] if not x.startswith('-')]):
    gin_file = f'{job.folder}/{_check_parts(job, parts[:1])[0]}.gin'
  path = gin_text.find(gin_file, [str(root) for root in _config_roots()])
  text = path.read_text(encoding='utf-8')
  head = itertools.takewhile(lambda x: x.startswith('#'), text.splitlines())
  # The first three lines are the licence.
  return '\n'.join(line[2:] for line in itertools.islice(head, 3, None))


def _parse(argv: list[str]) -> list[_CommandLine]:
  """Returns the command lines to run, one after another."""
  name, *flags = argv
  job = commands.JOBS.get(name)
  if job is None:
    remedy = _did_you_mean(name, commands.JOBS)
    raise UsageError(f'there is no command {name!r}.{remedy}\n{commands.USAGE}')
  files, paths, bindings, parts = [], [], [], []
  for flag in flags:
    if job.folder is not None and not flag.startswith('-'):
      parts.append(flag)
    elif flag.startswith(_FILE_FLAG):
      files.append(flag.removeprefix(_FILE_FLAG))
    elif flag.startswith(_PATH_FLAG):
      paths.extend(flag.removeprefix(_PATH_FLAG).split(','))
    elif flag.startswith(_OUTPUT_FLAG):
      path = flag.removeprefix(_OUTPUT_FLAG)
      bindings.append((job.output_macro, repr(path)))
    elif match := _BINDING_FLAG.fullmatch(flag):
      bindings.append((match[1], _gin_value(*match.groups())))
    elif (match := _OWN_FLAG.fullmatch(flag)) and match[1] in job.flags:
      bindings.append((match[1].upper(), repr(match[2])))
    else:
      raise UsageError(_unknown(flag, job))
  rest = tuple(paths), tuple(bindings)
  if job.folder is not None:
    return [
        _CommandLine(job, part, (f'{job.folder}/{part}.gin', *files), *rest)
        for part in _check_parts(job, parts)
    ]
  if job.is_complete:
    files = [job.gin_file, *(f for f in files if f != job.gin_file)]
  if not files:
    raise UsageError(f'--gin_file is required.\n{commands.USAGE}')
  return [_CommandLine(job, job.function, tuple(files), *rest)]


def _unknown(flag: str, job: commands.Job) -> str:
  """Returns the message for an argument that is no flag of a command."""
  name = flag.partition('=')[0]
  own = (f'--{each}' for each in job.flags)
  known = [x.rstrip('=') for x in (_FILE_FLAG, _PATH_FLAG, _OUTPUT_FLAG, *own)]
  if name in known or name.startswith(_BINDING_PREFIX):
    return f'{flag!r} has no value. Write {name}=VALUE, with "=" in between.'
  remedy = _did_you_mean(name, known) or _as_setting(flag, job)
  return f'the flag {flag!r} is unknown.{remedy}\n{commands.USAGE}'


def _as_setting(flag: str, job: commands.Job) -> str:
  """Returns a hint at the setting that a flag may mean, empty for none."""
  name, _, value = flag.removeprefix('--').partition('=')
  known = sorted({*_macros_of(job).mentioned, *commands.PROVIDERS})
  meant = name.upper().replace('-', '_')
  close = difflib.get_close_matches(meant, known, n=1)
  return f' Did you mean --gin.{close[0]}={value or "VALUE"}?' if close else ''


def _check_parts(job: commands.Job, parts: list[str]) -> list[str]:
  """Returns the named parts of a job, or all parts if none is named."""
  folders = [root / job.folder for root in _config_roots()]
  own = pathlib.Path(job.gin_file).stem
  names = {p.stem for f in folders for p in f.glob('*.gin')} - {own}
  # Figures come last, because they show measurements of the tables.
  known = sorted(names, key=lambda name: (name.startswith('figure'), name))
  for part in parts:
    if part not in known:
      raise UsageError(
          f'there is no {part!r}. Choose from: {", ".join(known)}.'
      )
  return [name for name in known if name in parts or not parts]


def _gin_value(name: str, text: str) -> str:
  """Returns a flag's value in gin syntax; quotes a bare path or word."""
  if not text.strip():
    raise UsageError(
        f'--gin.{name}= has no value. Give one; a shell variable in it may be'
        ' unset.'
    )
  try:
    value = ast.literal_eval(text)
  except (SyntaxError, ValueError):
    return repr(text) if _BARE_STRING.fullmatch(text) else text
  # Commas without parentheses are a tuple in Python, but an error in gin.
  if isinstance(value, tuple) and ast.literal_eval(f'[{text}]') != [value]:
    raise UsageError(
        f'--gin.{name}={text} cannot be read: several values need parentheses.'
        f" Write --gin.{name}='({text})'."
    )
  return text


def _configure(command: _CommandLine) -> Callable[[], object]:
  """Parses the gin files and returns the configured job."""
  gin = _import('gin')
  if command.job.on_host:
    # JAX would wait for an accelerator that another process uses.
    jax.config.update('jax_platforms', 'cpu')
  quiet.keep_libtpu_from_searching()
  with _quiet_tensorflow():
    job = getattr(_import(command.job.module), command.function)
  gin.clear_config()  # removes the config of an earlier command
  # Keep only the reader of plain files, in UTF-8. The other reader treats a
  # folder as a Python package and fails on folders without an __init__.py.
  open_text = functools.partial(open, encoding='utf-8')
  gin.config._FILE_READERS[:] = [(open_text, os.path.isfile)]
  # Otherwise gin would always search the current folder first, and then the
  # folders of earlier commands.
  gin.config._LOCATION_PREFIXES[:] = _search_paths(command)
  for name in command.job.optional:
    gin.parse_config(f'{name} = None')
  for name in command.gin_files:
    with _gin_errors_in(name), _quiet_tensorflow():
      gin.parse_config_file(name)
  for name, value in command.bindings:
    with _gin_errors_in(f'{_BINDING_PREFIX}{name}={value}'):
      gin.parse_config(f'{name} = {value}')
  _finalize(gin, command.job)
  return lambda: _run(gin, command.job, job)


def _import(name: str):
  try:
    return importlib.import_module(name)
  except ModuleNotFoundError as error:
    raise UsageError(
        f'{error.name}, which jobs need, is not installed. Install the package'
        " with its extra: pip install 'speculative_t5x[jobs]'."
    ) from error


@contextlib.contextmanager
def _quiet_tensorflow() -> Iterator[None]:
  """Keeps TensorFlow quiet and off GPUs while the context imports it.

  Discards stderr within the context: TensorFlow prints lines, partly about
  GPUs, before its logging is set up, and no variable turns them off.
  """
  with quiet.quiet_stderr():
    yield
    quiet.keep_tensorflow_off_accelerators()


def _config_roots() -> list[pathlib.Path]:
  """Returns the folders that can hold `configs`: of a clone and of a wheel."""
  package = pathlib.Path(__file__).parents[2]
  return [package.parent, package]


@contextlib.contextmanager
def _gin_errors_in(source: str) -> Iterator[None]:
  """Converts gin's exceptions to an error that names the file or flag."""
  try:
    yield
  except _GIN_ERRORS as error:
    message = _message(error)
    # Gin's message begins with the representation of its parser.
    _, found, rest = message.partition('Failed to parse token')
    if found:
      message = f'{found}{rest}; strings need quotes'
    raise UsageError(
        f'{source} cannot be read: {message.rstrip(".")}.'
        + _import_hint(source, message)
    ) from error


def _import_hint(source: str, message: str) -> str:
  """Returns the remedy of a module that is not imported, empty for others."""
  if match := _NOT_IMPORTED.search(message):
    if source.startswith(_BINDING_PREFIX):
      return (
          ' A flag can refer only to what the gin files use: set this in a gin'
          ' file that imports its module, and give that by --gin_file.'
      )
    name = match[1] or match[2]
    return (
        f" Import it in this file, as by 'import {name}' for a module of your"
        " own, after 'from __gin__ import dynamic_registration'."
    )
  if match := _NO_MODULE.search(message):
    return (
        f' If {match[1]} is a module of your own, set PYTHONPATH to the folder'
        ' that it is in.'
    )
  return ''


def _finalize(gin, job: commands.Job) -> None:
  """Checks that values are set and of their kinds, locks the configuration."""
  if names := _REQUIRED.findall(gin.config_str()):
    flags = ' '.join(
        f'--{name.lower()}=...'
        if name.lower() in job.flags
        else f'--gin.{name}=...'
        for name in names
    )
    raise UsageError(
        f'{", ".join(names)} must be set: {flags}, or in a gin file.'
    )
  try:
    gin.finalize()
  except ValueError as error:
    if match := _UNSET_MACRO.match(str(error)):
      raise UsageError(
          f'The macro {match[1]} is used but has no value.'
          + (_provider(match[1]) or _NO_VALUE)
      ) from error
    raise
  _check_references(gin)
  try:
    kinds.check(gin.config)
  except ValueError as error:
    raise UsageError(error) from error


def _check_references(gin) -> None:
  """Rejects jobs in scopes without settings, and calls of jobs.

  Gin would run the one with the settings of no scope, and the other before the
  job that it belongs to.
  """
  config = gin.config._CONFIG
  jobs = {f'{job.module}.{job.function}' for job in commands.JOBS.values()}
  scopes = {
      name
      for scope, selector in config
      if selector != 'gin.macro'
      for name in scope.split('/')
  }
  for each in gin.config.iterate_references(config):
    if each.configurable.selector not in jobs:
      continue
    name = each.configurable.name
    for scope in each.scopes:
      if scope not in scopes:
        raise UsageError(
            f'{name} is used in the scope {scope}, in which nothing is set.'
            + (_did_you_mean(scope, scopes) or ' Correct the name.')
        )
    if each.evaluate:
      raise UsageError(
          f'A gin file calls the job {name}. Refer to it without parentheses:'
          f' @{"/".join([*each.scopes, each.selector])}.'
      )


def _run(gin, settings: commands.Job, job: Callable) -> None:
  try:
    configurable = gin.get_configurable(job)
  except LookupError as error:
    raise UsageError(
        f'No gin file configures the job {job.__name__}. Add one from'
        ' configs/runs.'
    ) from error
  output = gin.get_bindings(f'{settings.output_macro}/macro')
  _check_output(settings, output.get('value'))
  if not settings.on_host:
    # Only then, because counting processes opens the devices, which some parts
    # of the job `paper` do not need.
    if jax.distributed.is_initialized():
      sharding.check_one_process()
    compilation_cache.enable(str(output.get('value')))
  try:
    with _kept_settings(gin, settings, output):
      configurable()
  except TypeError as error:
    # An unbound argument is an error of the gin files; any other TypeError is a
    # bug.
    if match := _MISSING.match(str(error)):
      raise UsageError(
          f'The gin files do not set {match[2]} of {match[1]}. Add the gin file'
          ' of configs that sets it.'
      ) from error
    raise
  except ValueError as error:
    if macro := _macro_of(gin, str(error)):
      raise ValueError(f'{_message(error)} Correct {macro}.') from error
    raise


@contextlib.contextmanager
def _kept_settings(gin, job: commands.Job, output) -> Iterator[None]:
  """Keeps what the gin files set, if the output folder does not otherwise."""
  if job.may_change is None:
    yield
    return
  settings = {
      _setting(scope, selector, name): repr(value)
      for (scope, selector), bindings in gin.config._CONFIG.items()
      for name, value in bindings.items()
  }
  with kept_settings.keep(output['value'], settings, job.may_change):
    yield


def _setting(scope: str, selector: str, name: str) -> str:
  """Returns the name of a binding as a gin file has it."""
  if selector == 'gin.macro':
    return scope
  return f'{scope}/{selector}.{name}'.removeprefix('/')


def _macro_of(gin, text: str) -> str | None:
  """Returns the macro that gave the value an error names, None without one."""
  if (match := _BAD_VALUE.match(text)) is None:
    return None
  name, configurable, scope = match.groups()
  # Not gin's query, which fails if other modules have a function of this name.
  found = {
      (where, repr(bindings[name]))
      for (where, selector), bindings in gin.config._CONFIG.items()
      if selector.rpartition('.')[2] == configurable and name in bindings
  }
  is_around = lambda where: not where or f'{scope}/'.startswith(f'{where}/')
  innermost = max((w for w, _ in found if is_around(w)), key=len, default=None)
  settings = {s for w, s in found if innermost is None or w == innermost}
  setting = settings.pop() if len(settings) == 1 else ''
  return setting[1:] if setting.startswith('%') else None


def _check_output(job: commands.Job, value: object) -> None:
  """Rejects an output folder with an empty name, the current folder."""
  if value is not None and not os.fspath(value).strip():
    raise UsageError(
        f'{job.output_macro} must name a folder, got {value!r}. Give one:'
        ' --output_dir=<folder>. A shell variable in it may be unset.'
    )


def _check_macros(todo: list[_CommandLine]) -> None:
  """Rejects macros that are not used, which gin would ignore."""
  bindings = todo[0].bindings  # the same for all command lines
  try:
    macros = _read_macros(todo)
    for command in todo:
      _check_order(command)
    for _, value in bindings:
      macros.used |= gin_text.used_in(value)
  except (tokenize.TokenError, SyntaxError):
    return  # gin reports the error when it parses the file
  if macros.used:  # otherwise no job is configured, which `_run` reports
    _check_all_used(macros)
  for name, _ in bindings:
    if '.' not in name and name not in macros.mentioned:
      hint = _provider(name) or _did_you_mean(name.upper(), macros.mentioned)
      raise UsageError(f'no gin file mentions the macro {name}.{hint}')


def _check_all_used(macros: gin_text.Macros) -> None:
  for name, place in macros.places.items():
    if name not in macros.used:
      hint = _users(name) or _did_you_mean(name.upper(), macros.used)
      remedy = ' Remove it, or add the gin file that uses it.'
      raise UsageError(
          f'{place} sets the macro {name}, which is not used.{hint or remedy}'
      )


def _check_order(command: _CommandLine) -> None:
  """Rejects the file of a rule or a policy before that of the job.

  A job's file sets both to their defaults, and the last setting wins.
  """
  chosen = {}
  for file in command.gin_files:
    places = gin_text.read_macros([file], _search_paths(command)).places
    found = _CHOICES & places.keys()
    if found == _CHOICES:
      for name, earlier in chosen.items():
        raise UsageError(
            f'{earlier} sets {name}, but {file}, given after it, sets it again.'
            f' Give {earlier} last.'
        )
    else:
      chosen |= dict.fromkeys(found, file)


def _read_macros(todo: list[_CommandLine]) -> gin_text.Macros:
  """Returns the macros of all files of several command lines."""
  macros = gin_text.Macros()
  for command in todo:
    found = gin_text.read_macros(command.gin_files, _search_paths(command))
    macros.places |= found.places
    macros.used |= found.used
  return macros


def _provider(name: str) -> str:
  """Returns a hint at the gin file of a macro, empty for most macros."""
  file = commands.PROVIDERS.get(name)
  return f' Add the file of a drafter, as --gin_file={file}.' if file else ''


def _users(name: str) -> str:
  """Returns a hint at the commands that use a macro, empty without any."""
  users = [
      command
      for command, job in commands.JOBS.items()
      if name in _macros_of(job).used
  ]
  return f' It is a setting of: {", ".join(users)}.' if users else ''


def _macros_of(job: commands.Job) -> gin_text.Macros:
  """Returns the macros of the gin file that configures a command."""
  roots = [str(root) for root in _config_roots()]
  return gin_text.read_macros([job.gin_file], roots)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
  close = difflib.get_close_matches(name, sorted(known), n=1)
  return f' Did you mean {close[0]}?' if close else ''


def _search_paths(command: _CommandLine) -> list[str]:
  """Returns the folders in which gin files are searched, in order."""
  return [*command.search_paths, '.', *map(str, _config_roots())]


def _remote_message(error: Exception) -> str | None:
  """Returns the message of an error of a remote path; None for other errors."""
  if isinstance(error, KeyError) and (found := _SCHEME.match(str(error))):
    return (
        f'Paths that begin with {found[1]} are not supported. Give a local'
        ' path, or one of a bucket (gs://).'
    )
  if type(error).__module__.startswith('tensorflow.'):  # it reads buckets
    return ' '.join(_message(error).split())
  return None


def _message(error: Exception) -> str:
  """Returns the message with gin's file and line, without gin's call stack."""
  text = str(error.args[0] if isinstance(error, tokenize.TokenError) else error)
  location = _FILE_LOCATION.search(text)
  text = re.split(r'\n  (?:In|No values supplied) ', text)[0].strip()
  if location:
    return f'{text.rstrip(".")} ({location[1]}, line {location[2]}).'
  return text


if __name__ == '__main__':
  sys.exit(main())
