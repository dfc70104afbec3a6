# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the settings of a training beside its checkpoints.

A training resumes from its newest checkpoint, which does not state how it was
trained: without this check, other settings would continue it as another
training, or find it complete.
"""

from collections.abc import Collection, Iterator, Mapping
import contextlib
import json
import os

from etils import epath

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import whole_files

FILE_NAME = 'settings.json'
_MOST_SHOWN = 3


@contextlib.contextmanager
def keep(
    path: str | os.PathLike[str],
    settings: Mapping[str, str],
    may_change: Collection[str],
) -> Iterator[None]:
  """Checks and keeps settings before a job runs within the context.

  Args:
    path: the job's output folder; made if it is missing.
    settings: values by name, as texts.
    may_change: names of settings that a resumed job may change.
  Raises:
    ValueError: if the folder has checkpoints of other settings; names these.
    OSError: if the folder cannot be written to, or if another job writes to it.
  """
  folder = epath.Path(path)
  file = folder / FILE_NAME
  with folder_lock.hold(folder):
    if checkpoints.step_folders(folder) and file.exists():
      _check_same(file, settings, may_change)
    text = json.dumps(settings, indent=1, sort_keys=True) + '\n'
    whole_files.replace(folder, FILE_NAME, text.encode())
  try:
    yield
  except folder_lock.FolderInUseError:
    raise  # the settings are also those of the job at work
  except BaseException:
    if not checkpoints.step_folders(folder):
      file.unlink(missing_ok=True)
      with contextlib.suppress(OSError):  # the folder is not empty, or remote
        os.rmdir(folder)
    raise


def read(file: epath.Path, what: str) -> Mapping[str, str]:
  """Reads a file of values that are kept beside checkpoints.

  Args:
    file: of a JSON object.
    what: it keeps, a plural.
  Raises:
    ValueError: if the file is damaged.
  """
  try:
    return json.loads(file.read_text(encoding='utf-8'))
  except ValueError as error:
    raise ValueError(
        f'{file} is damaged ({error}). Remove it to resume the training without'
        f' a check of its {what}.'
    ) from error


def _check_same(
    file: epath.Path, settings: Mapping[str, str], may_change: Collection[str]
) -> None:
  earlier = read(file, 'settings')
  missing = 'no value'
  differences = [
      f'{name} was {earlier.get(name, missing)} and is now'
      f' {settings.get(name, missing)}'
      for name in sorted(earlier.keys() | settings.keys())
      if name not in may_change and earlier.get(name) != settings.get(name)
  ]
  if differences:
    more = '; and others' if len(differences) > _MOST_SHOWN else ''
    raise ValueError(
        f'{file.parent} has a training with other settings:'
        f' {"; ".join(differences[:_MOST_SHOWN])}{more}. Give the earlier ones,'
        f' or another folder; remove {file} to resume with the new ones.'
    )
