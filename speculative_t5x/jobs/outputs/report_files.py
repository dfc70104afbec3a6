# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text files of jobs that write a report and no run records."""

from collections.abc import Mapping
import os

from etils import epath

from speculative_t5x.loading.files import whole_files


def write(path: str | os.PathLike[str], files: Mapping[str, str]) -> None:
  """Writes text files, and makes their folder if there is none.

  Args:
    path: path of the folder; may be remote.
    files: texts by the names of their files.
  Raises:
    OSError: if the folder cannot be written to.
  """
  folder = epath.Path(path)
  try:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
      (folder / name).write_text(text, encoding='utf-8')
  except OSError as error:
    raise whole_files.cannot_write(folder, error) from error


def check_writable(path: str | os.PathLike[str]) -> None:
  """Checks that a folder can be written to, before a long computation.

  Raises:
    OSError: if it cannot.
  """
  write(path, {'probe': ''})
  (epath.Path(path) / 'probe').unlink()
