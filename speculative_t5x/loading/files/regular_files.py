# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Local files are opened only if they are regular ones.

Opening a named pipe waits for a writer, and a device may have no end. Remote
paths (`gs://`) have no such files and are not looked at.
"""

import os

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import user_paths


def check(path: epath.PathLike) -> None:
  """Check that a local path is a regular file, or a link to one."""
  if not user_paths.is_remote(path) and not os.path.isfile(path):
    raise errors.CheckpointError(
        f'{os.fspath(path)} is not a regular file. Copy or download the file'
        ' itself.'
    )


def check_tree(folder: epath.Path) -> None:
  """Check all files that lie in a folder and in the folders within."""
  if not user_paths.is_remote(folder):
    for path, _, names in os.walk(folder):
      for name in names:
        check(os.path.join(path, name))
