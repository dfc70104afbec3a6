# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps a second job out of a folder that one is writing to.

The lock is the file `job.lock`, which names its job. On this machine the
operating system holds it, and frees it when the process ends, however it ends.
In a bucket it is an object: a killed job leaves it behind, and two jobs that
begin in the same moment may both succeed.
"""

from collections.abc import Iterator
import contextlib
import datetime
import fcntl
import os
import platform
from typing import TextIO

from etils import epath

from speculative_t5x.checkpoints import regular_files
from speculative_t5x.jobs import output_folder

NAME = 'job.lock'


class FolderInUseError(OSError):
  """A folder that another job is writing to."""


@contextlib.contextmanager
def hold(path: str | os.PathLike[str]) -> Iterator[None]:
  """Makes a folder if it is missing, and keeps other jobs out meanwhile.

  A folder that was made here is removed if nothing was written to it.

  Args:
    path: of the folder; may be remote.
  Raises:
    FolderInUseError: if another job holds it, or one in a bucket that may have
      been killed.
    OSError: if it cannot be written to.
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
      raise output_folder.cannot_write(folder, error) from error
    yield


def _missing(folder: epath.Path) -> list[epath.Path]:
  """The folders to be made, innermost first; buckets have none."""
  if regular_files.is_remote(folder):
    return []
  return [each for each in (folder, *folder.parents) if not each.exists()]


def _remove_empty(folders: list[epath.Path]) -> None:
  with contextlib.suppress(OSError):  # one is not empty
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
      file = open(lock, 'a+', errors='replace')
    except FileNotFoundError:
      if os.path.islink(lock):
        raise  # it leads nowhere, however often it is tried
      continue  # another job ended, and removed the folder that it had made
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      with file:
        file.seek(0)
        holder = file.read()
      raise FolderInUseError(
          f'The folder {lock.parent} is in use by another job ({holder}). Wait'
          ' for its end, or give another folder.'
      ) from None
    if _is_in_place(file, lock):
      return file
    file.close()  # its job ended since it was opened, and removed it


def _is_in_place(file: TextIO, lock: epath.Path) -> bool:
  """Whether an open file is still the one of that name."""
  try:
    return os.path.samestat(os.fstat(file.fileno()), os.stat(lock))
  except FileNotFoundError:
    return False


@contextlib.contextmanager
def _held_object(lock: epath.Path) -> Iterator[None]:
  lock.parent.mkdir(parents=True, exist_ok=True)
  if lock.exists():
    raise FolderInUseError(
        f'The folder {lock.parent} is in use by another job'
        f' ({lock.read_text()}). Wait for its end, or give another folder. If'
        f' it is no longer running, remove {lock}.'
    )
  lock.write_text(_description())
  try:
    yield
  finally:
    lock.unlink(missing_ok=True)


def _description() -> str:
  now = datetime.datetime.now(datetime.UTC).isoformat(' ', 'seconds')
  return f'process {os.getpid()} on {platform.node()}, since {now}'
