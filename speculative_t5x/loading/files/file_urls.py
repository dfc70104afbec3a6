# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes `file://` URLs paths, wherever a path is taken.

etils, by which the package opens every path, knows buckets only.
"""

import os
import sys
import urllib.parse

from etils import epath

_SCHEME = 'file://'


@epath.register_path_cls(_SCHEME)
class LocalPath(type(epath.Path())):
  """The local path of a URL, as `pathlib.Path.as_uri` writes it."""

  def __new__(cls, *parts: epath.PathLike) -> 'LocalPath':
    return super().__new__(cls, *map(_without_scheme, parts))

  # From Python 3.12 on, paths keep what `__init__` gets, which is the URL.
  if sys.version_info >= (3, 12):

    def __init__(self, *parts: epath.PathLike):
      super().__init__(*map(_without_scheme, parts))


def _without_scheme(part: epath.PathLike) -> str:
  part = os.fspath(part)
  if not part.startswith(_SCHEME):
    return part
  host, _, path = part.removeprefix(_SCHEME).partition('/')
  if host not in ('', 'localhost'):
    raise ValueError(
        f'{part} is a file of the host {host!r}. Give a local path, in a URL'
        f' after three slashes: {_SCHEME}/{host}/{path}.'
    )
  return os.fsdecode(b'/' + urllib.parse.unquote_to_bytes(path))
