# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `speculative-t5x`: runs a job that gin files configure.

Flags are T5X's:

  speculative-t5x eval --gin_file=configs/runs/demo.gin --gin.GAMMA=5
"""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import difflib
import functools
import gc
import importlib
import io
import itertools
import os
import pathlib
import re
import signal
import sys
import textwrap
import tokenize

import gin
import jax

import speculative_t5x
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import gin_text
from speculative_t5x.jobs.command_line import kinds
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import quiet
from speculative_t5x.networks import sharding
from speculative_t5x.research import interruption

# TensorFlow, used only to read and tokenize, reads this when it is imported.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

_FLAGS = '--gin_file', '--gin_search_paths', '--output_dir'
_BINDING_PREFIX = '--gin.'
# A word or a path, from which a shell removes quotes. After a slash there may
# be anything, for no other value has one outside of quotes.
_BARE_STRING = re.compile(
    r'-|[./~].*|\w[^\'"()\[\]{}%@]*(/.*)?', re.DOTALL
)

# The statuses that shells expect.
_INTERRUPTED, _PIPE_CLOSED = 128 + signal.SIGINT, 128 + signal.SIGPIPE

# What gin writes behind the message of an error within a function that it calls
_CALL = "\n  In call to configurable '"
_REQUIRED = '%gin.REQUIRED'


class UsageError(ValueError):
  """The command line is not valid."""


@dataclasses.dataclass(frozen=True)
class _CommandLine:
  job: commands.Job
  function: str  # of the job's module
  gin_files: tuple[str, ...]
  search_paths: tuple[str, ...]
  bindings: tuple[tuple[str, str], ...]  # names and gin values

  @property
  def folders(self) -> list[str]:
    """Folders in which gin files are searched, in order."""
    return [*self.search_paths, '.', *_config_roots()]


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
    with interruption.remembered(), _rare_collections():
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
  except KeyboardInterrupt:
    job = commands.JOBS.get(argv[0])
    kept = ' Finished work is kept; the same command resumes.'
    is_resumed = job is not None and job.is_resumed
    print(f'Interrupted.{kept if is_resumed else ""}', file=sys.stderr)
    return _INTERRUPTED
  except Exception as error:
    if (message := _message(error)) is None:
      raise
    print(f'error: {message}', file=sys.stderr)
    return 2 if isinstance(error, UsageError | gin_text.GinFileError) else 1
  return 0


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
  """Has Python look for reference cycles less often than by default.

  Tracing makes millions of objects that stay, which Python would look through
  some hundred times: a tenth of the time from the command to the first answer.
  """
  before = gc.get_threshold()
  gc.set_threshold(100_000, *before[1:])
  try:
    yield
  finally:
    gc.set_threshold(*before)


def _print_utf_8() -> None:
  """Has stdout and stderr written as UTF-8 in every locale."""
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):  # not in a notebook
      # Names of files may hold bytes that are not UTF-8.
      stream.reconfigure(encoding='utf-8', errors='surrogateescape')


def _message(error: Exception) -> str | None:
  """Returns the message for a user; None for an error that is a bug."""
  if isinstance(error, ValueError | OSError | RuntimeError):
    return str(error).partition(_CALL)[0]
  if isinstance(error, KeyError) and '://' in str(error):  # of etils
    _, scheme, *_ = str(error).split("'")
    return (
        f'Paths that begin with {scheme} are not supported. Give a local'
        ' path, or one of a bucket (gs://).'
    )
  if type(error).__module__.startswith('tensorflow.'):  # it reads buckets
    return ' '.join(str(error).partition(_CALL)[0].split())
  return None


def _help(argv: list[str]) -> str:
  """Returns the help of a command or of its first named part.

  The help is the head comment of the gin file, and the defaults in it. Without
  a command, returns the overview of all commands.
  """
  job = commands.JOBS.get(argv[0]) if argv else None
  if job is None:
    return commands.overview()
  gin_file = job.gin_file
  if job.folder and (parts := [x for x in argv[1:] if not x.startswith('-')]):
    gin_file = f'{job.folder}/{_check_parts(job, parts[:1])[0]}.gin'
  text = gin_text.find(gin_file, _config_roots()).read_text(encoding='utf-8')
  head = itertools.takewhile(lambda x: x.startswith('#'), text.splitlines())
  # The first three lines are the licence.
  lines = [line[2:] for line in itertools.islice(head, 3, None)]
  macros = gin_text.read_macros([gin_file], _config_roots())
  lines += ['', 'All settings and their defaults:']
  for name in sorted(macros.mentioned):
    unset = 'None' if name in job.optional else _REQUIRED
    value = macros.values.get(name, unset)
    lines.append(f'  {name} = {"<required>" if value == _REQUIRED else value}')
    if folder := commands.CHOICES.get(name):
      lines += textwrap.wrap(
          f'--gin_file={folder}/<name>.gin sets it; names:'
          f' {", ".join(path.stem for path in _gin_files(folder))}',
          80,
          initial_indent=' ' * 6,
          subsequent_indent=' ' * 6,
          break_on_hyphens=False,
      )
  return '\n'.join(lines)


def _parse(argv: list[str]) -> list[_CommandLine]:
  """Returns the command lines to run, one after another."""
  name, *flags = argv
  job = commands.JOBS.get(name)
  if job is None:
    remedy = _did_you_mean(name, commands.JOBS)
    raise UsageError(f'there is no command {name!r}.{remedy}\n{commands.USAGE}')
  known = *_FLAGS, *(f'--{each}' for each in job.flags)
  files, paths, bindings, parts = [], [], [], []
  for flag in flags:
    key, equals, value = flag.partition('=')
    own = key.removeprefix('--')
    if job.folder is not None and not flag.startswith('-'):
      parts.append(flag)
    elif key.startswith(_BINDING_PREFIX) and equals:
      setting = key.removeprefix(_BINDING_PREFIX)
      bindings.append((setting, _gin_value(setting, value)))
    elif key not in known or not equals:
      raise UsageError(_unknown(flag, job, known))
    elif key == '--gin_file':
      files.append(value)
    elif key == '--gin_search_paths':
      paths.extend(value.split(','))
    else:
      macro = own.upper() if own in job.flags else job.output_macro
      bindings.append((macro, repr(value)))
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


def _unknown(flag: str, job: commands.Job, known: Sequence[str]) -> str:
  """Returns the message for an argument that no command can have."""
  name, _, value = flag.partition('=')
  if name in known or name.startswith(_BINDING_PREFIX):
    return f'{flag!r} has no value. Write {name}=VALUE, with "=" in between.'
  meant = name.removeprefix('--').upper().replace('-', '_')
  macros = {*_macros_of(job).mentioned, *_providers()}
  remedy = _did_you_mean(name, known) or _did_you_mean(
      meant, macros, f'{_BINDING_PREFIX}{{}}={value or "VALUE"}'
  )
  return f'the flag {flag!r} is unknown.{remedy}\n{commands.USAGE}'


def _check_parts(job: commands.Job, parts: list[str]) -> list[str]:
  """Returns the named parts of a job, or all parts if none is named."""
  names = {path.stem for path in _gin_files(job.folder)}
  names.discard(pathlib.Path(job.gin_file).stem)
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


def _config_roots() -> list[str]:
  """Returns the folders that can hold `configs`: of a clone and of a wheel."""
  package = pathlib.Path(__file__).parents[2]
  return [str(package.parent), str(package)]


def _gin_files(folder: str) -> list[pathlib.Path]:
  """Returns the gin files of a folder in `configs`, sorted by name."""
  folders = [pathlib.Path(root) / folder for root in _config_roots()]
  return sorted(path for each in folders for path in each.glob('*.gin'))


@functools.cache
def _providers() -> dict[str, str]:
  """Returns a gin file of a choice for each macro that those files mention."""
  return {
      name: f'{folder}/{path.name}'
      for folder in reversed(commands.CHOICES.values())
      for path in reversed(_gin_files(folder))
      for name in gin_text.read_macros([str(path)], _config_roots()).mentioned
  }


@functools.cache
def _macros_of(job: commands.Job) -> gin_text.Macros:
  """Returns the macros of the gin file that configures a command."""
  return gin_text.read_macros([job.gin_file], _config_roots())


def _check_macros(todo: list[_CommandLine]) -> None:
  """Rejects macros that are not used, which gin would ignore."""
  bindings = todo[0].bindings  # the same for all command lines
  macros = gin_text.Macros()
  try:
    for command in todo:
      found = gin_text.read_macros(command.gin_files, command.folders)
      macros.places |= found.places
      macros.used |= found.used
      _check_order(command)
    for _, value in bindings:
      macros.used |= gin_text.used_in(value)
  except (tokenize.TokenError, SyntaxError):
    return  # gin reports the error when it parses the file
  if not macros.used:
    return  # no job is configured, which `_run` reports
  for name, place in macros.places.items():
    if name not in macros.used:
      hint = _users(name) or _did_you_mean(name.upper(), macros.used)
      remedy = ' Remove it, or add the gin file that uses it.'
      raise UsageError(
          f'{place} sets the macro {name}, which is not used.{hint or remedy}'
      )
  for name, _ in bindings:
    if '.' not in name and name not in macros.mentioned:
      hint = _provider(name) or _did_you_mean(name.upper(), macros.mentioned)
      raise UsageError(f'no gin file mentions the macro {name}.{hint}')


def _check_order(command: _CommandLine) -> None:
  """Rejects the file of a choice before a file that sets its macro again.

  A job's file sets rule and policy to their defaults, and the last setting
  wins.
  """
  chosen = {}
  for file in command.gin_files:
    places = gin_text.read_macros([file], command.folders).places
    found = commands.CHOICES.keys() & places.keys()
    if len({commands.CHOICES[name] for name in found}) == 1:
      chosen |= dict.fromkeys(found, file)
      continue
    for name in sorted(found & chosen.keys()):
      raise UsageError(
          f'{chosen[name]} sets {name}, but {file}, given after it, sets it'
          f' again. Give {chosen[name]} last.'
      )


def _provider(name: str) -> str:
  """Returns a hint at the gin file of a macro, empty for most macros."""
  file = _providers().get(name)
  return f' Add the file of a choice, as --gin_file={file}.' if file else ''


def _users(name: str) -> str:
  """Returns a hint at the commands that use a macro, empty without any."""
  jobs = commands.JOBS.items()
  users = [command for command, job in jobs if name in _macros_of(job).used]
  return f' It is a setting of: {", ".join(users)}.' if users else ''


def _did_you_mean(name: str, known: Iterable[str], form: str = '{}') -> str:
  close = difflib.get_close_matches(name, sorted(known), n=1)
  return f' Did you mean {form.format(close[0])}?' if close else ''


def _configure(command: _CommandLine) -> Callable[[], object]:
  """Parses the gin files and returns the configured job."""
  if command.job.on_host:
    # JAX would wait for an accelerator that another process uses.
    jax.config.update('jax_platforms', 'cpu')
  quiet.keep_libtpu_from_searching()
  try:
    with _quiet_tensorflow():
      module = importlib.import_module(command.job.module)
  except ModuleNotFoundError as error:
    raise UsageError(
        f'{error.name}, which jobs need, is not installed. Install the package'
        " with its extra: pip install 'speculative_t5x[jobs]'."
    ) from error
  job = getattr(module, command.function)
  gin.clear_config()  # removes the config of an earlier command
  # Gin can only add readers and folders. Its other reader treats a folder as a
  # Python package, and the current folder would always come first, before those
  # of earlier commands.
  open_text = functools.partial(open, encoding='utf-8')
  gin.config._FILE_READERS[:] = [(open_text, os.path.isfile)]
  gin.config._LOCATION_PREFIXES[:] = command.folders
  for name in command.job.optional:
    gin.parse_config(f'{name} = None')
  for name in command.gin_files:
    with _gin_errors_in(name, command), _quiet_tensorflow():
      gin.parse_config_file(name)
  for name, value in command.bindings:
    with _gin_errors_in(f'{_BINDING_PREFIX}{name}={value}', command):
      gin.parse_config(f'{name} = {value}')
  _finalize(command.job)
  return functools.partial(_run, command.job, job)


@contextlib.contextmanager
def _quiet_tensorflow() -> Iterator[None]:
  """Keeps TensorFlow quiet and off GPUs while the context imports it.

  Discards stderr within the context: TensorFlow prints lines, partly about
  GPUs, before its logging is set up, and no variable turns them off.
  """
  with quiet.quiet_stderr():
    yield
    quiet.keep_tensorflow_off_accelerators()


@contextlib.contextmanager
def _gin_errors_in(source: str, command: _CommandLine) -> Iterator[None]:
  """Converts gin's exceptions to an error that names the file or flag."""
  try:
    yield
  except Exception as error:
    if message := _renamed(command):
      raise UsageError(message) from error
    # The text of a TokenError is that of a tuple.
    is_token_error = isinstance(error, tokenize.TokenError)
    text = str(error.args[0] if is_token_error else error)
    # Gin's message begins with the representation of its parser.
    _, found, rest = text.partition('Failed to parse token')
    if found:
      text = f'{found}{rest}; strings need quotes'
    text = ' '.join(text.split()).rstrip('.')
    raise UsageError(f'{source} cannot be read: {text}.') from error


def _renamed(command: _CommandLine) -> str | None:
  """Returns a line about a name of before in the gin files, if there is one."""
  with contextlib.suppress(tokenize.TokenError, SyntaxError):
    names = gin_text.read_macros(command.gin_files, command.folders).names
    for old, new in commands.RENAMED.items():
      # A module is named where it is imported, a class behind its module.
      *_, module, last = old.split('.')
      own = f'{module}.{last}.' if last[0].isupper() else None
      for name, place in names.items():
        if name == old or own and f'{name}.'.startswith(own):
          return f'{place}: {old} is now {new}. Correct the name.'
  return None


def _settings() -> dict[str, str]:
  """Returns the values of all settings by name, as gin writes them."""
  # One line for each; gin rules lines of this length between them.
  lines = gin.config_str(max_line_length=10**5).splitlines()
  pairs = (line.split(' = ', 1) for line in lines if not line.startswith('#'))
  return dict(pair for pair in pairs if len(pair) == 2)


def _finalize(job: commands.Job) -> None:
  """Checks that values are set and of their kinds, locks the configuration."""
  settings = _settings()
  required = [name for name, x in settings.items() if x == _REQUIRED]
  if required:
    flags = ' '.join(
        f'--{name.lower()}=...'
        if name.lower() in job.flags
        else f'--gin.{name}=...'
        for name in required
    )
    raise UsageError(
        f'{", ".join(required)} must be set: {flags}, or in a gin file.'
    )
  for name in sorted(set().union(*map(gin_text.used_in, settings.values()))):
    if name not in settings:
      hint = ' Correct its name, or add the gin file that sets it.'
      raise UsageError(
          f'The macro {name} is used but has no value.{_provider(name) or hint}'
      )
  _check_scopes(settings)
  _register_check()
  try:
    gin.finalize()
  except ValueError as error:
    name = str(error).partition(' ')[0]
    hint = _provider(name) if name in commands.CHOICES else ''
    raise UsageError(f'{error}{hint}') from error


@functools.cache  # hooks stay; T5X's scripts, which do without, run elsewhere
def _register_check() -> None:
  """Has gin check the kinds of all settings when it finalizes them."""
  gin.config.register_finalize_hook(kinds.check)


def _check_scopes(settings: Mapping[str, str]) -> None:
  """Rejects a job in a scope without settings: gin would use those of none."""
  jobs = {job.module.rpartition('.')[2] for job in commands.JOBS.values()}
  known = {scope for name in settings for scope in name.split('/')[:-1]}
  for name, value in settings.items():
    for reference in gin_text.references_in(value):
      *scopes, module = reference.split('/')
      unset = [scope for scope in scopes if scope not in known]
      if module in jobs and unset:
        raise UsageError(
            f'{name} runs {module} in the scope {unset[0]}, in which nothing is'
            f' set.{_did_you_mean(unset[0], known)}'
        )


def _run(command: commands.Job, job: Callable) -> None:
  """Runs a configured job, and says which setting an error is about."""
  try:
    is_set_up = bool(gin.get_bindings(job, resolve_references=False))
  except (LookupError, ValueError):  # gin does not know the function
    is_set_up = False
  if not is_set_up:
    raise UsageError(
        f'No gin file configures the job {job.__name__}. Add one from'
        ' configs/runs.'
    )
  macro = command.output_macro
  output = gin.get_bindings(f'{macro}/macro').get('value')
  if output is not None and not os.fspath(output).strip():
    raise UsageError(  # or results would be written to the current folder
        f'{macro} must name a folder, got {output!r}. Give one:'
        ' --output_dir=<folder>. A shell variable in it may be unset.'
    )
  if not command.on_host:
    # Only then, because counting processes opens the devices, which some parts
    # of the job `paper` do not need.
    if jax.distributed.is_initialized():
      sharding.check_one_process()
    compilation_cache.enable(str(output))
  settings = _settings()
  kept = (
      contextlib.nullcontext()
      if command.may_change is None
      else resumption.keep_settings(output, settings, command.may_change)
  )
  try:
    with kept:
      gin.get_configurable(job)()
  except (TypeError, ValueError) as error:
    text, _, called = str(error).partition(_CALL)
    name = called.partition("'")[0]
    if isinstance(error, TypeError):
      if not text.startswith((f'{name}() miss', f'{name}.__init__() miss')):
        raise  # a bug
      line = text.splitlines()[0]
      raise UsageError(f'{line}. Add the gin file that sets it.') from error
    argument = text.partition(' ')[0]
    macros = {
        macro.removeprefix('%')
        for setting, macro in settings.items()
        if setting.endswith(f'{name}.{argument}')
    }
    found = [x for x in macros if f'got {settings.get(x)}' in text]
    if len(found) != 1:
      raise
    raise ValueError(f'{text} Correct {found[0]}.') from error


if __name__ == '__main__':
  sys.exit(main())
