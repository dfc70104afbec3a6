# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one way from a path that a person writes to a path that is opened."""

import os

from etils import epath


def expand(path: epath.PathLike) -> epath.Path:
  """Return a path, local or remote (`gs://`), with the home folder for a tilde.

  Neither etils nor a shell, after `--flag=`, expands it.
  """
  return epath.Path(os.path.expanduser(path))


def is_remote(path: epath.PathLike) -> bool:
  """Return whether a path has a scheme, as `gs://bucket/model`."""
  return '://' in os.fspath(path)
