# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `speculative-t5x`: runs a job that gin files set up.

The only module of the package that imports gin. Flags are T5X's:

  speculative-t5x eval --gin_file=configs/runs/demo.gin --gin.GAMMA=5
"""

import ast
from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import difflib
import importlib
import itertools
import os
import pathlib
import re
import signal
import sys
import tokenize

import jax

from speculative_t5x import commands
from speculative_t5x import compilation_cache
from speculative_t5x import gin_text
from speculative_t5x import interruption
from speculative_t5x import quiet

# Read by TensorFlow when it is imported; it only reads and tokenizes here.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

_FILE_FLAG, _PATH_FLAG = '--gin_file=', '--gin_search_paths='
_OUTPUT_FLAG = '--output_dir='
_OWN_FLAG = re.compile(r'--(\w+)=(.*)', re.DOTALL)
_BINDING_FLAG = re.compile(r'--gin\.([^=\s]+)=(.*)', re.DOTALL)
# A path or word, which a shell leaves without quotes.
_BARE_STRING = re.compile(r'[\w./~][^\'"()\[\]{}%@]*')

_INTERRUPTED = 128 + signal.SIGINT  # the status that shells expect

# What gin raises for a file or a binding that it cannot read.
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
_SCHEME = re.compile(r"'(\w+://)'")
_FILE_LOCATION = re.compile(r'\n  In file "(.+)", line (\d+)')


class UsageError(ValueError):
  """A command line that cannot be carried out."""


@dataclasses.dataclass(frozen=True)
class _CommandLine:
  job: commands.Job
  function: str  # of the job's module
  gin_files: tuple[str, ...]
  search_paths: tuple[str, ...]
  bindings: tuple[tuple[str, str], ...]  # names and gin values


def main(argv: Sequence[str] | None = None) -> int:
  """Runs a command; returns its exit status.

  Bad input gives one error on stderr and status 1, or 2 for a command that
  cannot be carried out as it is written. An interrupt gives one line and status
  130. Anything else is a bug and keeps its traceback.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  try:
    if not argv or {'-h', '--help'} & set(argv):
      print(_help(argv))
      return 0 if argv else 2
    with interruption.remembered():
      todo = _parse(argv)
      _check_macros(todo)
      for command in todo:
        _configure(command)()
        interruption.check()
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
    kept = ' What was finished is kept; the same command goes on.'
    goes_on = job is not None and job.is_resumed
    print(f'Interrupted.{kept if goes_on else ""}', file=sys.stderr)
    return _INTERRUPTED
  return 0


def _help(argv: list[str]) -> str:
  """The head of a command's gin file, or of the one that its first part has.

  Where no command is named, all of them.
  """
  job = commands.JOBS.get(argv[0]) if argv else None
  if job is None:
    return commands.overview()
  gin_file = job.gin_file
  if job.folder and (parts := [x for x in argv[1:] if not x.startswith('-')]):
    gin_file = f'{job.folder}/{_check_parts(job, parts[:1])[0]}.gin'
  path = gin_text.find(gin_file, [str(root) for root in _config_roots()])
  text = path.read_text()
  head = itertools.takewhile(lambda x: x.startswith('#'), text.splitlines())
  # The licence is two lines and a blank one.
  return '\n'.join(line[2:] for line in itertools.islice(head, 3, None))


def _parse(argv: list[str]) -> list[_CommandLine]:
  """What to carry out, one after another."""
  name, *flags = argv
  job = commands.JOBS.get(name)
  if job is None:
    raise UsageError(f'there is no command {name!r}.\n{commands.USAGE}')
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
      raise UsageError(
          f'the flag {flag!r} is not understood.\n{commands.USAGE}'
      )
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


def _check_parts(job: commands.Job, parts: list[str]) -> list[str]:
  """The parts of a job that were asked for, or all that there are."""
  folders = [root / job.folder for root in _config_roots()]
  own = pathlib.Path(job.gin_file).stem
  names = {p.stem for f in folders for p in f.glob('*.gin')} - {own}
  # Figures come last: they lay over their curves what tables measured.
  known = sorted(names, key=lambda name: (name.startswith('figure'), name))
  for part in parts:
    if part not in known:
      raise UsageError(f'there is no {part!r}. Choose of: {", ".join(known)}.')
  return [name for name in known if name in parts or not parts]


def _gin_value(name: str, text: str) -> str:
  """The value as gin reads it; a bare path or word becomes a string."""
  if not text.strip():
    raise UsageError(
        f'--gin.{name}= has no value. Give one; a shell variable in it may be'
        ' unset.'
    )
  try:
    value = ast.literal_eval(text)
  except (SyntaxError, ValueError):
    return repr(text) if _BARE_STRING.fullmatch(text) else text
  # Python takes commas alone for a tuple, and gin for a mistake.
  if isinstance(value, tuple) and ast.literal_eval(f'[{text}]') != [value]:
    raise UsageError(
        f'--gin.{name}={text} cannot be read: several values need parentheses.'
        f" Write --gin.{name}='({text})'."
    )
  return text


def _configure(command: _CommandLine) -> Callable[[], object]:
  """Parses the gin files; returns the job, bound by them."""
  gin = _import('gin')
  if command.job.on_host:
    # One that another process uses would be waited for.
    jax.config.update('jax_platforms', 'cpu')
  quiet.keep_libtpu_from_searching()
  with _quiet_tensorflow():
    job = getattr(_import(command.job.module), command.function)
  gin.clear_config()  # of an earlier command in this process
  # Leave it the reader of files alone. The other one takes a folder for a
  # Python package and fails at those without an __init__.py, as configs.
  del gin.config._FILE_READERS[1:]
  # Else gin would look into the current folder first, whatever was asked for,
  # and into those of earlier commands.
  gin.config._LOCATION_PREFIXES[:] = _search_paths(command)
  for name in command.gin_files:
    with _gin_errors_in(name), _quiet_tensorflow():
      gin.parse_config_file(name)
  for name, value in command.bindings:
    with _gin_errors_in(f'--gin.{name}={value}'):
      gin.parse_config(f'{name} = {value}')
  _finalize(gin, command.job)
  return lambda: _run(gin, command.job, job)


def _import(name: str):
  try:
    return importlib.import_module(name)
  except ModuleNotFoundError as error:
    raise UsageError(
        f'{error.name} is not installed, which jobs need. Install the package'
        " with its extra: pip install 'speculative_t5x[jobs]'."
    ) from error


@contextlib.contextmanager
def _quiet_tensorflow() -> Iterator[None]:
  """Leaves it the CPU alone where jobs and tasks within import it.

  Also drops the lines that it writes to stderr meanwhile, some about the GPUs
  that it looks for. They come before its logging is set up, so no variable
  turns them off.
  """
  with quiet.quiet_stderr():
    yield
    quiet.keep_tensorflow_off_accelerators()


def _config_roots() -> list[pathlib.Path]:
  """The folders that hold `configs`: in a clone, and in a wheel."""
  package = pathlib.Path(__file__).parent
  return [package.parent, package]


@contextlib.contextmanager
def _gin_errors_in(source: str) -> Iterator[None]:
  """Turns what gin raises into an error that names the file or flag."""
  try:
    yield
  except _GIN_ERRORS as error:
    message = _message(error)
    # Gin shows the parser's object before its own words.
    _, found, rest = message.partition('Failed to parse token')
    if found:
      message = f'{found}{rest}; texts need quotes'
    raise UsageError(
        f'{source} cannot be read: {message.rstrip(".")}.'
    ) from error


def _finalize(gin, job: commands.Job) -> None:
  """Locks the configuration, after a look for values left out."""
  if names := _REQUIRED.findall(gin.config_str()):
    flags = ' '.join(
        f'--{name.lower()}=...'
        if name.lower() in job.flags
        else f'--gin.{name}=...'
        for name in names
    )
    raise UsageError(
        f'{", ".join(names)} must be given: {flags}, or in a gin file.'
    )
  try:
    gin.finalize()
  except ValueError as error:
    if match := _UNSET_MACRO.match(str(error)):
      raise UsageError(
          f'The macro {match[1]} is used and has no value. Correct its name,'
          ' or add the gin file that sets it.'
      ) from error
    raise


def _run(gin, settings: commands.Job, job: Callable) -> None:
  try:
    configurable = gin.get_configurable(job)
  except LookupError as error:
    raise UsageError(
        f'No gin file sets up the job {job.__name__}. Add one of configs/runs.'
    ) from error
  output = gin.get_bindings(f'{settings.output_macro}/macro')
  if output:
    _check_output(settings, output['value'])
  if not settings.on_host:
    compilation_cache.enable(str(output.get('value')))
  try:
    configurable()
  except TypeError as error:
    # Gin calls with what it has; any other TypeError is a bug.
    if match := _MISSING.match(str(error)):
      raise UsageError(
          f'The gin files give {match[1]} no {match[2]}. Add the file of'
          ' configs that does.'
      ) from error
    raise


def _check_output(job: commands.Job, value: object) -> None:
  """Refuses an output folder without a name, which would be the current one."""
  if value is None and not job.needs_output:
    return
  if not isinstance(value, str | os.PathLike) or not os.fspath(value).strip():
    raise UsageError(
        f'{job.output_macro} names no folder, got {value!r}. Give one:'
        ' --output_dir=<folder>. A shell variable in it may be unset.'
    )


def _check_macros(todo: list[_CommandLine]) -> None:
  """Refuses a macro that nothing uses: gin itself would ignore it."""
  bindings = todo[0].bindings  # all of them have the same
  try:
    macros = _read_macros(todo)
    for _, value in bindings:
      macros.used |= gin_text.used_in(value)
  except (tokenize.TokenError, SyntaxError):
    return  # gin says what is wrong where it is parsed
  if macros.used:  # otherwise no job is set up, which is said when it is run
    _check_all_used(macros)
  for name, _ in bindings:
    if '.' not in name and name not in macros.mentioned:
      hint = _did_you_mean(name, macros.mentioned)
      raise UsageError(f'no gin file mentions the macro {name}.{hint}')


def _check_all_used(macros: gin_text.Macros) -> None:
  for name, place in macros.places.items():
    if name not in macros.used:
      hint = _did_you_mean(name, macros.used)
      remedy = ' Remove it, or add the gin file that uses it.'
      raise UsageError(
          f'{place} sets the macro {name}, which nothing uses.{hint or remedy}'
      )


def _read_macros(todo: list[_CommandLine]) -> gin_text.Macros:
  """The macros of all files of several command lines."""
  macros = gin_text.Macros()
  for command in todo:
    found = gin_text.read_macros(command.gin_files, _search_paths(command))
    macros.places |= found.places
    macros.used |= found.used
  return macros


def _did_you_mean(name: str, known: set[str]) -> str:
  close = difflib.get_close_matches(name.upper(), sorted(known), n=1)
  return f' Did you mean {close[0]}?' if close else ''


def _search_paths(command: _CommandLine) -> list[str]:
  """Files are found from here, and from where the package's own lie."""
  return [*command.search_paths, '.', *map(str, _config_roots())]


def _remote_message(error: Exception) -> str | None:
  """What a remote path was refused for; None if the error is another one."""
  if isinstance(error, KeyError) and (found := _SCHEME.match(str(error))):
    return (
        f'Paths that begin with {found[1]} are not supported. Give a local'
        ' path, or one of a bucket (gs://).'
    )
  if type(error).__module__.startswith('tensorflow.'):  # which reads buckets
    return ' '.join(_message(error).split())
  return None


def _message(error: Exception) -> str:
  """The message, with the file and line that gin adds and none of its calls."""
  text = str(error.args[0] if isinstance(error, tokenize.TokenError) else error)
  location = _FILE_LOCATION.search(text)
  text = re.split(r'\n  (?:In|No values supplied) ', text)[0].strip()
  if location:
    return f'{text.rstrip(".")} ({location[1]}, line {location[2]}).'
  return text


if __name__ == '__main__':
  sys.exit(main())
