# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes `file://` URLs paths, wherever a path is taken.

etils, by which the package opens every path, knows buckets only.
"""

import os
import urllib.parse

from etils import epath

_SCHEME = 'file://'


@epath.register_path_cls(_SCHEME)
class LocalPath:
  """Returns the local path of a URL, as `pathlib.Path.as_uri` writes it."""

  def __new__(cls, url: str) -> epath.Path:
    host, _, path = url.removeprefix(_SCHEME).partition('/')
    if host not in ('', 'localhost'):
      raise ValueError(
          f'{url} is a file of the host {host!r}. Give a local path, in a URL'
          f' after three slashes: {_SCHEME}/{host}/{path}.'
      )
    return epath.Path(os.fsdecode(b'/' + urllib.parse.unquote_to_bytes(path)))
