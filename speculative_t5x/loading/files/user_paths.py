# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one way from a path that a person writes to a path that is opened.

Neither etils nor a shell, after `--flag=`, expands a tilde. etils takes
`file://` for the scheme of a bucket that it does not know.
"""

import os
import urllib.parse

from etils import epath

_SCHEME = 'file://'


def expand(path: epath.PathLike) -> epath.Path:
  """Return a path, local or remote (`gs://`), whose parts are spelled out.

  A tilde at its beginning is the home folder, and a `file://` URL, as
  `pathlib.Path.as_uri` writes it, is a local path. A name that is not UTF-8,
  which no record of a run could hold, is refused.
  """
  text = os.fspath(path)
  if text.startswith(_SCHEME):
    text = _without_scheme(text)
  path = epath.Path(os.path.expanduser(text))
  check_utf8(path)
  return path


def check_utf8(path: epath.PathLike) -> None:
  """Raise ValueError for a path that files encoded as UTF-8 cannot hold."""
  text = os.fspath(path)
  try:
    text.encode()
  except UnicodeEncodeError as error:
    raise ValueError(
        f'The path {ascii(text)} is not UTF-8, and no record of a run could'
        ' hold it. Rename the file or the folder, or make a link to it.'
    ) from error


def _without_scheme(url: str) -> str:
  host, _, path = url.removeprefix(_SCHEME).partition('/')
  if host not in ('', 'localhost'):
    raise ValueError(
        f'{url} is a file of the host {host!r}. Give a local path, in a URL'
        f' after three slashes: {_SCHEME}/{host}/{path}.'
    )
  return os.fsdecode(b'/' + urllib.parse.unquote_to_bytes(path))


def is_remote(path: epath.PathLike) -> bool:
  """Return whether a path has a scheme, as `gs://bucket/model`."""
  return '://' in os.fspath(path)
