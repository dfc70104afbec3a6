# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that change together, in numbered folders of a store.

A version is a folder `version_<number>`. Its manifest is written last, with the
hashes of the other files, so that a version is complete or does not count.
Nothing is renamed, which a bucket would not allow.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import hashlib
import json
import re
from typing import Any

from etils import epath

from speculative_t5x.loading.files import json_file
from speculative_t5x.loading.files import whole_files

_MANIFEST = 'store.json'
_NAME = re.compile(r'version_(\d{1,9})')


class StoreError(ValueError):
  """A store that is missing, damaged, empty, or of another model."""


def exists(folder: epath.PathLike) -> bool:
  """Returns whether a folder has a complete version."""
  return newest(epath.Path(folder)) is not None


def newest(folder: epath.Path) -> int | None:
  """Returns the number of the newest complete version, or None."""
  complete = [
      number for number, path in _versions(folder).items() if _is_complete(path)
  ]
  return max(complete, default=None)


@dataclasses.dataclass(frozen=True)
class Version:
  """A version that was read.

  Attributes:
    path: its folder.
    manifest: what was written as such.
    files: contents by name.
  """

  path: epath.Path
  manifest: dict[str, Any]
  files: dict[str, bytes]

  def damaged(self, reason: str) -> StoreError:
    """Returns an error for contents that mean nothing."""
    return _damaged(self.path, reason)


def read(folder: epath.Path, number: int) -> Version:
  """Reads a version.

  Raises:
    StoreError: if a file is missing or is not the one that was written.
  """
  path = _path(folder, number)
  try:
    manifest = json_file.read(path / _MANIFEST)
    hashes = manifest['files']
    files = {name: (path / name).read_bytes() for name in hashes}
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise _damaged(path, str(error)) from error
  for name, data in files.items():
    if _hash(data) != hashes[name]:
      raise _damaged(path, f'{name} has other bytes than were written')
  return Version(path, manifest, files)


def write(
    folder: epath.Path,
    number: int,
    manifest: Mapping[str, Any],
    files: Mapping[str, bytes],
) -> None:
  """Writes a version; removes all others but the newest complete one before.

  That one stays for those who are reading it.

  Raises:
    OSError: if the folder cannot be written to.
  """
  previous, others = newest(folder), _versions(folder)
  path = _path(folder, number)
  hashes = {name: _hash(data) for name, data in files.items()}
  try:
    path.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
      (path / name).write_bytes(data)
    text = json.dumps({**manifest, 'files': hashes}, allow_nan=False)
    (path / _MANIFEST).write_text(text, encoding='utf-8')
  except OSError as error:
    raise whole_files.cannot_write(folder, error) from error
  for other, path in others.items():
    if other not in (previous, number):
      with contextlib.suppress(OSError):  # a later write tries again
        path.rmtree()


def next_number(folder: epath.Path) -> int:
  """Returns a number above those of all versions, complete or not."""
  return 1 + max(_versions(folder), default=0)


def _versions(folder: epath.Path) -> dict[int, epath.Path]:
  """Returns the folders of versions by their numbers."""
  if not folder.is_dir():
    return {}
  found = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
  return {int(match[1]): path for match, path in found if match}


def _is_complete(path: epath.Path) -> bool:
  """Returns whether the manifest of a version was written to its end."""
  manifest = path / _MANIFEST
  return manifest.is_file() and whole_files.first_object(manifest) is not None


def _path(folder: epath.Path, number: int) -> epath.Path:
  return folder / f'version_{number}'


def _hash(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()


def _damaged(path: epath.Path, reason: str) -> StoreError:
  return StoreError(
      f'The store of answers {path} is damaged: {reason}. Remove that folder;'
      ' the version before it is then used.'
  )
