# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps the settings of a training, and digests of its data.

A training resumes from its newest checkpoint, which does not state how it was
trained. Without these files beside it, other settings or data (decodes of a
target that was trained anew, a changed file of the task) would continue it as
another training.
"""

from collections.abc import Collection, Mapping, Sequence
import hashlib
import json
import os

from etils import epath
import numpy as np

from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files

_SETTINGS, _DATA = 'settings.json', 'data.json'  # beside checkpoints


def keep_settings(
    path: str | os.PathLike[str],
    settings: Mapping[str, str],
    may_change: Collection[str],
) -> None:
  """Check and keep settings before a training runs.

  The path is the folder of the checkpoints, which is made if it is missing.
  """
  folder = user_paths.expand(path)
  with folder_lock.hold(folder):
    _keep(folder, _SETTINGS, settings, may_change=may_change)


def keep_data(
    folder: epath.Path,
    data: Mapping[str, Sequence[np.ndarray]],
    target: str | None = None,
) -> None:
  """Check and keep digests of the data of a training, arrays by their names.

  Likewise of the checkpoint that it is distilled from, if any. The caller has
  locked the folder, that of the checkpoints.
  """
  digests = {name: _digest(data[name]) for name in data}
  if target is not None:
    digests['target'] = resumption.digest_of(target)
  # An older version kept no digest of the target.
  _keep(folder, _DATA, digests, may_lack={'target'})


def _keep(
    folder: epath.Path,
    name: str,
    values: Mapping[str, str],
    may_change: Collection[str] = (),
    may_lack: Collection[str] = (),
) -> None:
  """Compare values with those of the folder's training, and write them.

  They may lack some names there.
  """
  file = folder / name
  if checkpoints.step_folders(folder) and file.exists():
    remedy = f'remove {file} to resume without this check'
    earlier = json_files.first_object(file) or {}  # none of a damaged file
    added = {*may_lack} - earlier.keys()
    if names := resumption.differing(earlier, values, {*may_change, *added}):
      told = names
      if name == _SETTINGS:  # digests would tell nothing
        told = [
            f'{x} was {earlier.get(x, "unset")} and is now'
            f' {values.get(x, "unset")}'
            for x in names
        ]
      raise ValueError(
          f'{folder} has a training with other {file.stem}: {"; ".join(told)}.'
          f' Give the earlier ones, or another folder; {remedy}.'
      )
  text = json.dumps(values, indent=1, sort_keys=True) + '\n'
  whole_files.replace(folder, name, text.encode())


def _digest(arrays: Sequence[np.ndarray]) -> str:
  digest = hashlib.sha256()
  for array in arrays:
    digest.update(f'{array.dtype} {array.shape}\n'.encode())
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()
