# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of the Hugging Face hub, by their names, in the hub's own cache.

A name is `owner/name`, unless there is such a local path, or
`hf://owner/name`, with `@` and a branch, a tag or a commit after it if wanted.
The package huggingface_hub looks it up and downloads; the cache, the endpoint,
the token and the offline mode are its own, as its environment variables say.
"""

from collections.abc import Iterator
import contextlib
import functools
import os
import re

from etils import epath

from speculative_t5x import extras
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import user_paths

_SCHEME = 'hf://'
_NAME = re.compile(rf'(?:{_SCHEME})?(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?')
_CONFIG = 'config.json'  # of every model that is read here


def is_name(path: epath.PathLike) -> bool:
  """Return whether a path is a name for the hub, which is not asked."""
  name = os.fspath(path)
  if name.startswith(_SCHEME):
    return True
  return bool(_NAME.fullmatch(name)) and not user_paths.expand(path).exists()


def find(path: epath.PathLike) -> str | None:
  """Return the name of a model with its commit; None for a file or folder.

  A name is looked up once per process, so that all its files are of one commit.
  By the name with its commit they are found again on any machine.

  Raises:
    errors.CheckpointError: if the hub has no such model or revision, or does
      not give it, or if neither the hub nor the cache can be used.
  """
  return _find(os.fspath(path)) if is_name(path) else None


@functools.cache
def _find(name: str) -> str:
  match = _NAME.fullmatch(name)
  if match is None:
    raise errors.CheckpointError(
        f'{name} does not name a model of the Hugging Face hub. Write'
        f' {_SCHEME}<owner>/<name>, and @<branch, tag or commit> after it if'
        ' it is not of the main branch.'
    )
  repo, revision = match.groups()
  with _explaining(name):
    import huggingface_hub

    # The cache has a folder per commit.
    file = huggingface_hub.hf_hub_download(repo, _CONFIG, revision=revision)
  return f'{repo}@{user_paths.expand(file).parent.name}'


@functools.cache
def fetch(name: str, patterns: tuple[str, ...]) -> epath.Path:
  """Download what the cache lacks of a model; return the folder of its files.

  The model is named with its commit, as `find` returns it; patterns are those
  of a shell for the names of the files.

  Raises:
    errors.CheckpointError: if they cannot be downloaded.
  """
  repo, _, commit = name.partition('@')
  with _explaining(name):
    import huggingface_hub

    folder = huggingface_hub.snapshot_download(
        repo, revision=commit, allow_patterns=[*patterns]
    )
  return user_paths.expand(folder)


@contextlib.contextmanager
def _explaining(name: str) -> Iterator[None]:
  """Turn what huggingface_hub raises within into an error of one line."""
  try:
    yield
  except Exception as error:  # its own, of the network and of the disk
    reason = f'the Hugging Face hub gives none: {errors.first_line(error)}'
    remedy = 'If it is private or gated, log in by `hf auth login`'
    if isinstance(error, ImportError):
      reason = 'huggingface_hub, which downloads by names, is not installed'
      remedy = f'For a name of the hub, {extras.install("hub")}'
    raise errors.CheckpointError(
        f'No model {name}: there is no such path, and {reason}. Give the path'
        f' of a folder, or correct the name. {remedy}.'
    ) from error
