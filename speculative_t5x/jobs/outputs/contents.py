# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Digests of checkpoints and tables, equal for a copy elsewhere.

Local files that are read are digested. In a bucket, where each file costs a
request and a checkpoint may have thousands, sizes and times stand for those
that are written anew with any other.
"""

from concurrent import futures
import functools
import hashlib
import os
import pathlib

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.files import user_paths

_REMOTE = *checkpoints.WRITTEN_ANEW, token_counts.FILE_NAME


def digest(path: str) -> str:
  """Return the digest of a folder's files, or of a model of the hub."""
  _, path = checkpoints.fetch(path)
  folder = user_paths.expand(path)
  if user_paths.is_remote(folder):
    files = [x for x in (folder / name for name in _REMOTE) if x.exists()]
    found = [(x.name, y.length, y.mtime) for x in files for y in [x.stat()]]
  else:
    folder = pathlib.Path(folder)
    files = checkpoints.files_in(folder)
    with futures.ThreadPoolExecutor() as pool:
      digests = pool.map(_of_file, files)
      names = (str(file.relative_to(folder)) for file in files)
      found = list(zip(names, digests, strict=True))
  return hashlib.sha256(repr(found).encode()).hexdigest()


def _of_file(file: pathlib.Path) -> str:
  found = file.stat()
  # A change of a file cannot keep its last time.
  state = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
  return _of_state(os.fspath(file), state)


@functools.cache
def _of_state(file: str, state: tuple[int, ...]) -> str:
  del state
  with open(file, 'rb') as opened:
    return hashlib.file_digest(opened, 'sha256').hexdigest()
