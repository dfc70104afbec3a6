# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint leaves that could not be written, as on a full disk."""

from collections.abc import Iterable, Iterator
import contextlib
import logging
import os
import re
import sys
import threading
import time

from etils import epath

from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import layouts

# What Orbax names a folder that it is writing to.
_UNFINISHED = ('orbax-checkpoint-tmp', 'partial_save')
# Where TensorStore says what the operating system refused.
_OS_ERROR_CODE = re.compile(r"\[os_error_code='(\d+)'\]")
_MAX_WAIT_S = 30.0  # for threads that write on after an error


@contextlib.contextmanager
def nothing_left_behind(step_folder: epath.Path) -> Iterator[None]:
  """Removes what a failure leaves of a checkpoint, and of its new parents.

  Args:
    step_folder: that is written to meanwhile.
  Raises:
    errors.CheckpointError: in one line, for what the operating system refused.
  """
  _remove_unfinished(step_folder)  # of a process that was killed
  new = [folder for folder in step_folder.parents if not folder.exists()]
  try:
    with _quiet_threads():
      yield
  except BaseException as error:
    with contextlib.suppress(OSError, ValueError):  # they would hide the error
      _remove_unfinished(step_folder)
      for folder in new:  # innermost first, up to one that others write to
        folder.rmdir()
    if reason := _refused(error):
      raise errors.CheckpointError(
          f'The checkpoint {step_folder} cannot be written ({reason}). Nothing'
          ' of it is left, and earlier ones are kept. Give another folder, or'
          ' the space and the rights to write there.'
      ) from error
    raise


def _remove_unfinished(step_folder: epath.Path) -> None:
  if layouts.is_cut_off(step_folder):
    step_folder.rmtree()
  if step_folder.parent.exists():
    for name in _UNFINISHED:
      for folder in step_folder.parent.glob(f'{step_folder.name}.{name}*'):
        folder.rmtree()


@contextlib.contextmanager
def _quiet_threads() -> Iterator[None]:
  """Drops the tracebacks of Orbax's threads, whose first error is raised.

  After an error it waits for these threads, which still write. TensorStore
  calls their closed event loops even later: these calls then remain unheard.
  """
  logger = logging.getLogger('absl')
  without_exception = lambda record: not record.exc_info
  hook = sys.unraisablehook

  def drop_calls_of_closed_loops(unraisable):
    if str(unraisable.exc_value) != 'Event loop is closed':
      hook(unraisable)

  earlier = threading.enumerate()
  logger.addFilter(without_exception)
  sys.unraisablehook = drop_calls_of_closed_loops
  try:
    yield
    sys.unraisablehook = hook
  except BaseException:
    _await(set(threading.enumerate()).difference(earlier))
    raise
  finally:
    logger.removeFilter(without_exception)


def _await(threads: Iterable[threading.Thread]) -> None:
  deadline = time.monotonic() + _MAX_WAIT_S
  for thread in threads:
    if type(thread) is not threading.Thread:  # those of a pool never end
      # Orbax's own `join` raises what the thread raised.
      left = max(deadline - time.monotonic(), 0.0)
      threading.Thread.join(thread, left)


def _refused(error: BaseException) -> str | None:
  """Returns what the system refused to write; None for other errors."""
  if isinstance(error, errors.CheckpointError):
    return None  # of what is read
  if isinstance(error, OSError):
    return error.strerror or str(error)
  if match := _OS_ERROR_CODE.search(str(error)):
    return os.strerror(int(match[1]))
  return None
