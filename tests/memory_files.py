# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Paths that begin with memory://, which hold objects as a bucket does.

A file appears when it is closed. The paths are known to epath only within the
context, because epath has a fixed list of schemes.
"""

from collections.abc import Iterator
import contextlib
from unittest import mock

from etils.epath import backend
from etils.epath import gpath
from etils.epath import register
import fsspec

_SCHEME = 'memory'
_PREFIX = f'{_SCHEME}://'


class _Backend(backend._FileSystemSpecBackend):

  def fs(self, path):
    return fsspec.filesystem(_SCHEME)


@contextlib.contextmanager
def enabled() -> Iterator[None]:
  """Make the paths usable, and remove all their files at the end."""
  patches = [
      mock.patch.object(
          gpath, '_URI_PREFIXES', (*gpath._URI_PREFIXES, _PREFIX)
      ),
      mock.patch.object(gpath, '_URI_SCHEMES', gpath._URI_SCHEMES | {_SCHEME}),
      mock.patch.dict(gpath._URI_MAP_ROOT, {_PREFIX: f'/{_SCHEME}/'}),
      mock.patch.dict(gpath._PREFIX_TO_BACKEND, {_SCHEME: _Backend()}),
      mock.patch.object(gpath, '_is_tf_installed', lambda: False),
      mock.patch.dict(
          register._URI_PREFIXES_TO_CLS, {_PREFIX: gpath.PosixGPath}
      ),
  ]
  with contextlib.ExitStack() as stack:
    for patch in patches:
      stack.enter_context(patch)
    files = fsspec.filesystem(_SCHEME)
    stack.callback(lambda: files.rm('/', recursive=True))
    yield
