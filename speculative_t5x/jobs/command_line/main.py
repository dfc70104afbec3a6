# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `speculative-t5x`: runs a job that gin files configure.

Flags are T5X's:

  speculative-t5x eval --gin_file=configs/runs/demo.gin --gin.GAMMA=5
"""

from collections.abc import Iterator, Sequence
import contextlib
import gc
import io
import os
import re
import signal
import sys

from etils import epy

from speculative_t5x import extras
from speculative_t5x import version
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import flags
from speculative_t5x.jobs.command_line import help_text
from speculative_t5x.jobs.command_line import process

with epy.lazy_imports():  # it loads JAX, which may be too old
  from speculative_t5x.jobs.command_line import gin_job

# TensorFlow, used only to read and tokenize, reads this when it is imported.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

# The statuses that shells expect.
_INTERRUPTED, _PIPE_CLOSED = 128 + signal.SIGINT, 128 + signal.SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
  """Run a command and return its exit status.

  An invalid command line prints one error on stderr and returns status 2; other
  bad input returns status 1. An interrupt prints one line and returns status
  130. It ends with status 141, without a line, when the reader of its output
  has seen enough. Any other exception is a bug and keeps its traceback.
  """
  argv = list(sys.argv[1:] if argv is None else argv)
  _print_utf_8()
  try:
    if argv == ['--version']:
      print(f'speculative-t5x {version.VERSION}', flush=True)
      return 0
    if not argv or {'-h', '--help'} & set(argv):
      print(help_text.text(argv), flush=True)
      return 0 if argv else 2
    with _rare_collections():
      gin_job.run(flags.parse(argv))
    sys.stdout.flush()
  except SystemExit as error:  # of the parser of flags
    return error.code
  except BrokenPipeError:
    # The reader has seen enough. Nothing is left to flush at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return _PIPE_CLOSED
  except KeyboardInterrupt:
    print('Interrupted. The same command goes on.', file=sys.stderr)
    return _INTERRUPTED
  except Exception as error:
    if (message := _message(error)) is None:
      raise
    print(f'error: {message}', file=sys.stderr)
    return 2 if isinstance(error, commands.UsageError) else 1
  return 0


def run() -> None:
  """Run the command of this process, and end the process."""
  process.open_streams()
  process.find_own_modules()
  status = main()
  if status == _INTERRUPTED:
    # Programs that were started run on in threads of XLA, which may crash while
    # Python takes the process down.
    for stream in (sys.stdout, sys.stderr):
      with contextlib.suppress(OSError, ValueError):  # its reader is gone too
        stream.flush()
    os._exit(status)
  sys.exit(status)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
  """Have Python look for reference cycles less often than by default.

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
  for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):  # not in a notebook
      # Names of files may hold bytes that are not UTF-8.
      stream.reconfigure(encoding='utf-8', errors='surrogateescape')


def _message(error: Exception) -> str | None:
  """Return the message for a user; None for an error that is a bug."""
  if isinstance(error, version.UnsupportedError):
    return str(error)
  text = str(error).partition(gin_job.CALL)[0]
  if isinstance(error, ValueError | OSError | RuntimeError):
    return text
  missing = re.match(r'(\w+)(\.__init__)?\(\) missing .*', text)
  if missing and f"{gin_job.CALL}{missing[1]}'" in str(error):
    return f'{missing[0]}. Add the gin file that sets it.'
  if isinstance(error, KeyError) and '://' in text:  # of etils
    _, scheme, *_ = text.split("'")
    return (
        f'Paths that begin with {scheme} are not supported. Give a local'
        ' path, or one of a bucket (gs://).'
    )
  if isinstance(error, ImportError) and 'gcsfs' in text:  # of fsspec
    return (
        'Paths that begin with gs:// need the package gcsfs, or TensorFlow:'
        f' {extras.install("gcs")}.'
    )
  if isinstance(error, ImportError):
    return extras.missing(error)
  if type(error).__module__.startswith('tensorflow.'):  # it reads buckets
    return ' '.join(text.split())
  return None


if __name__ == '__main__':
  run()
