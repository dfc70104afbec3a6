# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Local files are opened only if they are regular ones.

Opening a named pipe waits for a writer, and a device may have no end. Remote
paths (`gs://`) have no such files and are not looked at.
"""

import os
import stat

from etils import epath

from speculative_t5x.loading.checkpoints import errors

_KINDS = {
    stat.S_IFDIR: 'a folder',
    stat.S_IFIFO: 'a named pipe',
    stat.S_IFSOCK: 'a socket',
    stat.S_IFCHR: 'a device',
    stat.S_IFBLK: 'a device',
}


def is_remote(path: epath.PathLike) -> bool:
  """Returns whether a path has a scheme, as `gs://bucket/model`."""
  return '://' in os.fspath(epath.Path(path))  # file:// is not


def check(path: epath.Path) -> None:
  """Checks that a path is a regular file, or a link to one.

  Raises:
    errors.CheckpointError: if it is a local path to anything else.
  """
  if not is_remote(path):
    _check(os.fspath(path))


def check_tree(folder: epath.Path) -> None:
  """Checks all that lies in a folder and in the folders within.

  Raises:
    errors.CheckpointError: if anything in a local folder is neither a folder
      nor a regular file, nor a link to one.
  """
  if not is_remote(folder) and os.path.isdir(folder):
    _check_tree(os.fspath(folder), set())


def _check_tree(folder: str, seen: set[tuple[int, int]]) -> None:
  status = os.stat(folder)
  if (status.st_dev, status.st_ino) in seen:
    return  # a link led back here
  seen.add((status.st_dev, status.st_ino))
  with os.scandir(folder) as entries:
    for entry in entries:
      is_link = entry.is_symlink()
      if os.path.isdir(entry.path) if is_link else entry.is_dir():
        _check_tree(entry.path, seen)
      elif is_link or not entry.is_file():
        _check(entry.path)


def _check(path: str) -> None:
  try:
    kind = stat.S_IFMT(os.stat(path).st_mode)
  except OSError as error:
    what = error.strerror
    if os.path.islink(path):
      what = f'it is a link to {os.readlink(path)}: {what}'
    raise errors.CheckpointError(
        f'{path} cannot be read: {what}. Copy or download the file again.'
    ) from error
  if kind != stat.S_IFREG:
    raise errors.CheckpointError(
        f'{path} is {_KINDS.get(kind, "something else")} and no regular file.'
        ' Copy or download the file itself.'
    )
