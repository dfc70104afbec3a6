# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps digests of the data of a training beside its checkpoints.

A training that resumes with the same settings may meet other data: its target,
trained anew, has other decodes, or a file of the task has changed. Without this
check it would continue as another training, or be taken for complete.
"""

from collections.abc import Mapping, Sequence
import hashlib
import json

from etils import epath
import numpy as np

from speculative_t5x.jobs.outputs import kept_settings
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.files import whole_files

FILE_NAME = 'data.json'


def check(
    folder: epath.Path, data: Mapping[str, Sequence[np.ndarray]]
) -> None:
  """Checks that a training resumes on its own data, or keeps what they are.

  Args:
    folder: of the checkpoints, which the caller has locked.
    data: arrays by the name of what they are, a plural.
  Raises:
    ValueError: if the folder has checkpoints of other data; names these.
    OSError: if the folder cannot be written to.
  """
  digests = {name: _digest(arrays) for name, arrays in data.items()}
  file = folder / FILE_NAME
  if checkpoints.step_folders(folder) and file.exists():
    earlier = kept_settings.read(file, 'data')
    changed = [name for name in digests if digests[name] != earlier.get(name)]
    if changed:
      raise ValueError(
          f'{folder} has a training with other {" and ".join(changed)}: a file'
          ' of the task has changed since, or the target, whose decodes are'
          f' others then. Give another folder; remove {file} to resume with the'
          ' new ones.'
      )
    return
  text = json.dumps(digests, indent=1, sort_keys=True) + '\n'
  whole_files.replace(folder, FILE_NAME, text.encode())


def _digest(arrays: Sequence[np.ndarray]) -> str:
  """Returns a digest of the values and shapes of arrays."""
  digest = hashlib.sha256()
  for array in arrays:
    digest.update(f'{array.dtype} {array.shape}\n'.encode())
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()
