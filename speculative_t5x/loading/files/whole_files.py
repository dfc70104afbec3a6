# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes files as a whole: never appended to.

Objects in a bucket allow nothing else, and appear only when they are complete.
"""

from collections.abc import Iterable, Iterator
import contextlib
import os

from etils import epath

from speculative_t5x.loading.files import user_paths


def write(folder: epath.Path, name: str, lines: Iterable[str]) -> epath.Path:
  """Write the lines of a file, one at a time, and return its path.

  Lines have no newlines; missing folders are made. Where the output folder
  cannot be written to, and after an interrupt, no part of the file is left.
  """
  return write_bytes(folder, name, (f'{line}\n'.encode() for line in lines))


def write_bytes(
    folder: epath.Path, name: str, parts: Iterable[bytes]
) -> epath.Path:
  """Write the parts of a file one after another; see `write`."""
  path = folder / name
  with writing(folder, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('wb') as file:
      for part in parts:
        file.write(part)
  return path


def check_writable(folder: epath.Path) -> None:
  """Check that a folder can be written to, before a long computation."""
  write(folder, 'probe', []).unlink()


def listed(folder: epath.Path, prefix: str) -> list[epath.Path]:
  """Return the paths in a folder whose names have a prefix, sorted.

  `glob` would take a bracket in the path of the folder for a pattern.
  """
  if not folder.is_dir():
    return []
  return sorted(x for x in folder.iterdir() if x.name.startswith(prefix))


def replace(folder: epath.Path, name: str, data: bytes) -> epath.Path:
  """Write a file that may exist; where this fails, the earlier one stays."""
  path, new = folder / name, folder / f'{name}.new'
  # An object is replaced once it is complete, a file truncated at once.
  if user_paths.is_remote(folder):
    with writing(folder):
      path.write_bytes(data)
  else:
    with writing(folder, new):
      new.write_bytes(data)
      os.replace(new, path)
  return path


@contextlib.contextmanager
def writing(folder: epath.Path, *unfinished: epath.Path) -> Iterator[None]:
  """Name the output folder in errors of writing within the context.

  Unfinished files are removed if writing fails or is interrupted, because a
  truncated file must not pass for a complete one.
  """
  try:
    yield
  except BaseException as error:
    with contextlib.suppress(OSError):
      for path in unfinished:
        path.unlink(missing_ok=True)
    if not isinstance(error, OSError):
      raise
    reason = error.strerror or ' '.join(str(error).split())
    raise OSError(
        f'The output folder {folder} cannot be written to ({reason}). Give'
        ' another one, or check its free space and permissions.'
    ) from error
