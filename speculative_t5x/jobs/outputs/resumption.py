# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps what a training depends on beside its checkpoints.

A training resumes from its newest checkpoint, which does not state how it was
trained: without this check, other settings or other data (decodes of a target
that was trained anew, a changed file of the task) would continue it as another
training, or find it complete.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import hashlib
import json
import os
from typing import Any

from etils import epath
import numpy as np

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import whole_files

SETTINGS, DATA = 'settings.json', 'data.json'
_MOST_SHOWN = 3


def differing(
    earlier: Mapping[str, Any],
    now: Mapping[str, Any],
    may_change: Collection[str] = (),
) -> list[str]:
  """Returns the sorted names of values that differ, or that only one has."""
  return [
      name
      for name in sorted(earlier.keys() | now.keys())
      if name not in may_change and earlier.get(name) != now.get(name)
  ]


@contextlib.contextmanager
def keep_settings(
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
  with folder_lock.hold(folder):
    _keep(folder, SETTINGS, settings, may_change)
  try:
    yield
  except folder_lock.FolderInUseError:
    raise  # the settings are also those of the job at work
  except BaseException:
    if not checkpoints.step_folders(folder):
      (folder / SETTINGS).unlink(missing_ok=True)
      with contextlib.suppress(OSError):  # the folder is not empty, or remote
        os.rmdir(folder)
    raise


def keep_data(
    folder: epath.Path, data: Mapping[str, Sequence[np.ndarray]]
) -> None:
  """Checks and keeps digests of the data of a training.

  Args:
    folder: folder of the checkpoints, which the caller has locked.
    data: arrays by the name of what they are.
  Raises:
    ValueError: if the folder has checkpoints of other data; names these.
    OSError: if the folder cannot be written to.
  """
  _keep(folder, DATA, {name: _digest(data[name]) for name in data}, ())


def _keep(
    folder: epath.Path,
    name: str,
    values: Mapping[str, str],
    may_change: Collection[str],
) -> None:
  """Compares values with those of the folder's training, and writes them."""
  file = folder / name
  if checkpoints.step_folders(folder) and file.exists():
    remedy = f'remove {file} to resume without this check'
    earlier = whole_files.first_object(file)
    if earlier is None:
      raise ValueError(f'{file} is damaged: {remedy}.')
    if names := differing(earlier, values, may_change):
      told = [
          each  # without its digests
          if name == DATA
          else f'{each} was {earlier.get(each, "unset")} and is now'
          f' {values.get(each, "unset")}'
          for each in names[:_MOST_SHOWN]
      ]
      more = '; and others' if len(names) > _MOST_SHOWN else ''
      raise ValueError(
          f'{folder} has a training with other {file.stem}: {"; ".join(told)}'
          f'{more}. Give the earlier ones, or another folder; {remedy}.'
      )
  text = json.dumps(values, indent=1, sort_keys=True) + '\n'
  whole_files.replace(folder, name, text.encode())


def _digest(arrays: Sequence[np.ndarray]) -> str:
  """Returns a digest of the values and shapes of arrays."""
  digest = hashlib.sha256()
  for array in arrays:
    digest.update(f'{array.dtype} {array.shape}\n'.encode())
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()
