# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Locks an output folder, so that only one job at a time writes to it.

The lock is the file `job.lock`, which names its process. A local file is locked
with `flock`, which the operating system releases when the process ends, however
it ends. In a bucket the lock is an object: a killed job leaves it behind, and
two jobs that start at the same moment may both succeed.
"""

from collections.abc import Iterator
import contextlib
import datetime
import fcntl
import os
import platform
from typing import TextIO

from etils import epath

from speculative_t5x.loading.files import regular_files
from speculative_t5x.loading.files import whole_files

NAME = 'job.lock'


class FolderInUseError(OSError):
  """Another job is writing to the folder."""


@contextlib.contextmanager
def hold(path: str | os.PathLike[str]) -> Iterator[None]:
  """Makes a folder if it is missing, and locks it within the context.

  A folder made here is removed at the end if it is empty.

  Args:
    path: path of the folder; may be remote.
  Raises:
    FolderInUseError: if another job holds the lock, or if a killed job has left
      its lock in a bucket.
    OSError: if the folder cannot be written to.
  """
  folder = epath.Path(path)
  new, lock = _missing(folder), folder / NAME
  with contextlib.ExitStack() as stack:
    stack.callback(_remove_empty, new)
    try:
      held = _held_object if regular_files.is_remote(lock) else _held_file
      stack.enter_context(held(lock))
    except FolderInUseError:
      raise
    except OSError as error:
      raise whole_files.cannot_write(folder, error) from error
    yield


def _missing(folder: epath.Path) -> list[epath.Path]:
  """Returns the folders to be made, innermost first; none for a bucket."""
  if regular_files.is_remote(folder):
    return []
  return [each for each in (folder, *folder.parents) if not each.exists()]


def _remove_empty(folders: list[epath.Path]) -> None:
  with contextlib.suppress(OSError):  # a folder is not empty
    for each in folders:
      os.rmdir(each)


@contextlib.contextmanager
def _held_file(lock: epath.Path) -> Iterator[None]:
  with _open_locked(lock) as file:
    try:
      file.truncate(0)
      file.write(_description())
      file.flush()
      yield
    finally:
      if _is_in_place(file, lock):
        lock.unlink()


def _open_locked(lock: epath.Path) -> TextIO:
  while True:
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
      file = open(lock, 'a+', encoding='utf-8', errors='replace')
    except FileNotFoundError:
      if os.path.islink(lock):
        raise  # a dangling link, for which retrying would not end
      continue  # another job ended and removed the folder that it had made
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      with file:
        file.seek(0)
        holder = file.read()
      raise FolderInUseError(
          f'The folder {lock.parent} is in use by another job ({holder}). Wait'
          ' until it ends, or give another folder.'
      ) from None
    if _is_in_place(file, lock):
      return file
    file.close()  # after it was opened, its job ended and removed it


def _is_in_place(file: TextIO, lock: epath.Path) -> bool:
  """Returns whether the path still refers to the open file."""
  try:
    return os.path.samestat(os.fstat(file.fileno()), os.stat(lock))
  except FileNotFoundError:
    return False


@contextlib.contextmanager
def _held_object(lock: epath.Path) -> Iterator[None]:
  lock.parent.mkdir(parents=True, exist_ok=True)
  if lock.exists():
    holder = lock.read_text(encoding='utf-8')
    raise FolderInUseError(
        f'The folder {lock.parent} is in use by another job ({holder}). Wait'
        ' until it ends, or give another folder. If it is no longer running,'
        f' remove {lock}.'
    )
  lock.write_text(_description(), encoding='utf-8')
  try:
    yield
  finally:
    lock.unlink(missing_ok=True)


def _description() -> str:
  now = datetime.datetime.now(datetime.UTC).isoformat(' ', 'seconds')
  return f'process {os.getpid()} on {platform.node()}, since {now}'
