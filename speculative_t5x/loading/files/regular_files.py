# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Local files are opened only if they are regular ones.

Opening a named pipe waits for a writer, and a device may have no end. Remote
paths (`gs://`) have no such files and are not looked at.
"""

import os
import stat

from etils import epath

from speculative_t5x.loading import errors

_KINDS = {
    stat.S_IFDIR: 'a folder',
    stat.S_IFIFO: 'a named pipe',
    stat.S_IFSOCK: 'a socket',
    stat.S_IFCHR: 'a device',
    stat.S_IFBLK: 'a device',
}


def is_remote(path: epath.PathLike) -> bool:
  """Return whether a path has a scheme, as `gs://bucket/model`."""
  return '://' in os.fspath(path)


def check(path: epath.Path) -> None:
  """Check that a path is a regular file, or a link to one.

  Raises:
    errors.CheckpointError: if it is a local path to anything else.
  """
  if is_remote(path):
    return
  try:
    mode = os.stat(path).st_mode
    problem = f'it is {_KINDS.get(stat.S_IFMT(mode), "something else")}'
  except OSError as error:
    mode = 0
    problem = str(error.strerror)
    if os.path.islink(path):
      problem = f'it is a link to {os.readlink(path)}: {problem}'
  if not stat.S_ISREG(mode):
    raise errors.CheckpointError(
        f'{path} is not a regular file: {problem}. Copy or download the file'
        ' itself.'
    )


def check_tree(folder: epath.Path) -> None:
  """Check all files that lie in a folder and in the folders within.

  Raises:
    errors.CheckpointError: if anything in a local folder is neither a folder
      nor a regular file, nor a link to one.
  """
  if not is_remote(folder):
    for path, _, names in os.walk(folder):
      for name in names:
        check(epath.Path(path) / name)
