# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of the Hugging Face hub, by their names, in the hub's own cache.

A name is `owner/name`, unless there is such a local path, or
`hf://owner/name`, with `@` and a branch, a tag or a commit after it if wanted.
The package huggingface_hub looks it up and downloads; the cache, the endpoint,
the token and the offline mode are its own, as its environment variables say.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
import contextlib
import dataclasses
import functools
import os
import re

from etils import epath

from speculative_t5x import extras
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import user_paths

_SCHEME = 'hf://'
_NAME = re.compile(
    rf'(?:{_SCHEME})?(\w[\w.-]*/\w[\w.-]*)(?:@(\w[\w./-]*))?'
)
_CONFIG = 'config.json'  # of every model that is read here
_TIMEOUT_S = 10  # to answer whether there is a model; as for its files


@dataclasses.dataclass(frozen=True)
class Snapshot:
  """A model of the hub at one commit.

  Attributes:
    repo: Owner and name.
    folder: The folder of the commit in the cache, named by it.
    files: Names of all files that the commit has; of those in the cache, where
      the hub cannot be reached.
  """

  repo: str
  folder: epath.Path
  files: frozenset[str]

  @property
  def name(self) -> str:
    """The name by which the same files are found again on any machine."""
    return f'{self.repo}@{self.folder.name}'

  def fetch(
      self, choose: Callable[[Collection[str]], Iterable[str]]
  ) -> epath.Path:
    """Download what the cache lacks of the files chosen; return the folder.

    `choose` is given the names of all files. It may name others too.

    Raises:
      errors.CheckpointError: if they cannot be downloaded.
    """
    missing = [
        name
        for name in self.files.intersection(choose(self.files))
        if not (self.folder / name).exists()
    ]
    if missing:
      with _explaining(self.name):
        import huggingface_hub

        huggingface_hub.snapshot_download(
            self.repo, revision=self.folder.name, allow_patterns=missing
        )
    return self.folder


def is_name(path: epath.PathLike) -> bool:
  """Return whether a path is a name for the hub, which is not asked."""
  name = os.fspath(path)
  if name.startswith(_SCHEME):
    return True
  return bool(_NAME.fullmatch(name)) and not user_paths.expand(path).exists()


def find(path: epath.PathLike) -> Snapshot | None:
  """Return the model that a path names; None for the path of a file or folder.

  A name is looked up once per process, so that all its files are of one commit.

  Raises:
    errors.CheckpointError: if the hub has no such model or revision, or does
      not give it, or if neither the hub nor the cache can be used.
  """
  return _find(os.fspath(path)) if is_name(path) else None


@functools.cache
def _find(name: str) -> Snapshot:
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
    from huggingface_hub import errors as hub_errors

    files = None
    try:
      info = huggingface_hub.HfApi().model_info(
          repo, revision=revision, timeout=_TIMEOUT_S
      )
      files = [each.rfilename for each in info.siblings or ()]
    except (
        hub_errors.RepositoryNotFoundError,
        hub_errors.RevisionNotFoundError,
    ):
      raise
    except Exception as error:  # of the network, of many kinds
      unreachable = error
    try:
      # By its revision: the cache keeps the commit that this is.
      config = huggingface_hub.hf_hub_download(
          repo, _CONFIG, revision=revision, local_files_only=files is None
      )
    except hub_errors.LocalEntryNotFoundError as error:
      raise error from (unreachable if files is None else error.__cause__)
  folder = user_paths.expand(config).parent
  return Snapshot(
      repo, folder, frozenset(os.listdir(folder) if files is None else files)
  )


@contextlib.contextmanager
def _explaining(name: str) -> Iterator[None]:
  """Turn what huggingface_hub raises within into an error of one line."""
  try:
    yield
  except Exception as error:  # its own, of the network and of the disk
    is_path = not name.startswith(_SCHEME)
    where = 'there is no such path, and ' if is_path else ''
    raise errors.CheckpointError(
        f'No model {name}: {where}{_problem(error)}'
    ) from error


def _problem(error: Exception) -> str:
  """Return what is wrong with a model of the hub, and the remedy."""
  if isinstance(error, ImportError):
    return (
        'huggingface_hub, which downloads models by their names, is not'
        f' installed. Give the path of a folder, or {extras.install("hub")}.'
    )
  from huggingface_hub import constants

  both = f'{error} {error.__cause__ or ""}'  # the cause of a cache without it
  said = ' '.join(both.split())[:500].rstrip('.')
  return (
      f'{constants.ENDPOINT} does not give it, nor the cache'
      f' {constants.HF_HUB_CACHE} (HF_HUB_OFFLINE, HF_HOME): {said}. Correct'
      ' the name, or give the path of a folder; if the model is private or'
      ' gated, log in by `hf auth login` or set HF_TOKEN.'
  )
