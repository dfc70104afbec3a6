# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Locks an output folder, so that only one job at a time writes to it.

The lock of a local folder is filelock's: the operating system releases it when
the process ends, however it ends, or, on a file system without such locks, its
contents tell filelock whether the process is alive. In a bucket `job.lock` is
an object: a killed job leaves it behind, and two jobs that start at the same
moment may both succeed, because neither etils nor TensorFlow can create an
object only if it is absent.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import tempfile

from etils import epath
import filelock

from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files

NAME = 'job.lock'
_WAIT_S = 0.1  # for a lock that another job removes at this moment


class FolderInUseError(OSError):
  """Another job is writing to the folder."""


@contextlib.contextmanager
def hold(path: str | os.PathLike[str]) -> Iterator[None]:
  """Make a folder if it is missing, and lock it within the context.

  A folder made here is removed at the end if it is empty. It may be remote,
  where a killed job leaves its lock.
  """
  folder = user_paths.expand(path)
  lock, new = folder / NAME, []
  is_remote = user_paths.is_remote(folder)
  if not is_remote:
    new = [each for each in (folder, *folder.parents) if not each.exists()]
  with contextlib.ExitStack() as stack:
    stack.callback(_remove_empty, new)
    with whole_files.writing(folder):
      folder.mkdir(parents=True, exist_ok=True)
      is_held = is_remote and lock.exists()
      try:
        if not is_remote:
          has_flock = _has_flock(folder)
          kind = filelock.FileLock if has_flock else filelock.SoftFileLock
          stack.enter_context(kind(lock, timeout=_WAIT_S))
        elif not is_held:
          lock.write_bytes(b'')
      except filelock.Timeout:
        is_held = True
    if is_held:
      raise FolderInUseError(
          f'The folder {folder} is in use by another job. Wait until it ends,'
          f' or give another folder. If no job runs, remove {lock}.'
      )
    # Before the lock is released: whoever waits for the file that was removed
    # finds that it is not in place, and makes another.
    stack.callback(lock.unlink, missing_ok=True)
    yield


def _has_flock(folder: epath.Path) -> bool:
  """Return whether the file system of a folder has locks.

  filelock knows ENOSYS alone for one without. NFS without its lock daemon says
  ENOLCK, and others EOPNOTSUPP or EINVAL. Nobody else holds a new file, so that
  every error means the same.
  """
  with tempfile.TemporaryFile(dir=folder) as file:
    try:
      fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
      return False
  return True


def _remove_empty(folders: list[epath.Path]) -> None:
  """Remove folders, innermost first, up to one that is not empty."""
  with contextlib.suppress(OSError):
    for each in folders:
      os.rmdir(each)
