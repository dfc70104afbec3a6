# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Settings that a job must share with its output folder to resume.

Records and chunks are found by a name that covers settings, and checkpoints by
their contents. A training resumes from its newest checkpoint, which does not
state how it was trained: its settings and digests of its data are kept beside
the checkpoints.
Without this check other settings or data (decodes of a target that was trained
anew, a changed file of the task) would continue it as another training.
"""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import hashlib
import json
import os
from typing import Any

from etils import epath
import numpy as np

from speculative_t5x.jobs.outputs import contents
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record

# The keys of a record that identify a configuration.
IDENTITY = (
    'job', 'task', 'split', 'num_examples', 'target', 'drafter', 'verification',
    'gamma', 'gamma_policy', 'temperature', 'topk', 'topp', 'minp', 'typicalp',
    'num_decodes', 'seed', 'batch_size', 'inputs_length', 'targets_length',
    'num_valid_tokens', 'device', 'host', 'mesh', 'matmul_precision',
    'simulated_acceptance', 'repeats', 'rounds',
)  # fmt: skip
_MODELS = 'target', 'drafter'
_OPTIONAL = 'beams', 'brevity_penalty', 'length_penalty', 'draft_beams'
_CODE = ('package_version', 'commit')
# When and by which code a part was measured; stored with it.
ORIGIN = ('created', *_CODE)
# Every name of a configuration begins with it.
NAME_PREFIX = 'temperature_'
_SETTINGS, _DATA = 'settings.json', 'data.json'  # beside checkpoints
_MOST_SHOWN = 3
CONTENTS = 'contents'  # the key of digests of models and vocabularies


def identity_of(record: run_record.RunRecord) -> dict[str, Any]:
  """Return the values of a record that identify its configuration, as JSON."""
  values = dataclasses.asdict(record)
  found = {key: values[key] for key in IDENTITY}
  for key in (*_OPTIONAL, 'draft_sampling', 'inputs_digest'):
    if values[key] is not None:  # left out as in records without the key
      found[key] = values[key]
  if record.reference:  # likewise
    found['reference'] = record.reference.name, record.reference.version
  for role in _MODELS:
    found[role] = by_contents(getattr(record, role))
  return json.loads(json.dumps(found, allow_nan=False))


def by_contents(
    described: descriptions.ModelDescription
    | descriptions.DrafterDescription
    | None,
) -> dict[str, Any] | None:
  """Return a description, as JSON, with contents in the place of paths.

  It is another one if a checkpoint is replaced, so that what was measured with
  the earlier one is not found, and the same for a copy at another path.
  """
  if described is None:
    return None
  found = dataclasses.asdict(described)
  found.pop('checkpoint')
  found.pop('table', None)
  of_paths = set(map(descriptions.name_of, described.paths))
  names = (described.name or '').split(descriptions.JOINED)
  found['name'] = [x for x in names if x not in of_paths]
  return found | {CONTENTS: list(map(contents.digest, described.paths))}


def of_vocabulary(vocabulary: vocabularies.Vocabulary) -> dict[str, str]:
  """Return what identifies a vocabulary, as JSON; likewise."""
  return {CONTENTS: vocabularies.digest(vocabulary)}


def paths_of(record: run_record.RunRecord) -> dict[str, Any]:
  """Return what a record was made of, by its names, as JSON."""
  models = {role: getattr(record, role) for role in _MODELS}
  paths = {role: each and each.paths for role, each in models.items()}
  return {'task': record.task, **paths}


def name_of(
    record: run_record.RunRecord, options: Mapping[str, Any] | None = None
) -> str:
  """Return the name of a configuration, for its files.

  `options` are further settings, as JSON.
  """
  identity = [identity_of(record), options or {}]
  digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]
  temperature = record.temperature
  # The requests of a batch have their own.
  setting = 'own' if temperature is None else f'{temperature:g}'
  return f'{NAME_PREFIX}{setting}_{digest}'


def origin_of(record: run_record.RunRecord) -> dict[str, str | None]:
  """Return when and by which code a record was made."""
  return {key: getattr(record, key) for key in ORIGIN}


def other_code(found: Mapping[str, Any], record: run_record.RunRecord) -> str:
  """Return a note on the code version that measured, if it is another."""
  if all(found[key] == getattr(record, key) for key in _CODE):
    return ''
  return (
      f', measured by version {found["package_version"]}, commit'
      f' {found["commit"]}; remove it to measure again'
  )


def differing(
    earlier: Mapping[str, Any],
    now: Mapping[str, Any],
    may_change: Collection[str] = (),
) -> list[str]:
  """Return the sorted names of values that differ, or that only one has."""
  return [
      name
      for name in sorted((earlier.keys() | now.keys()) - {*may_change})
      if earlier.get(name) != now.get(name)
  ]


@contextlib.contextmanager
def keep_settings(
    path: str | os.PathLike[str],
    settings: Mapping[str, str],
    may_change: Collection[str],
) -> Iterator[None]:
  """Check and keep settings before a training runs within the context.

  The path is the folder of the checkpoints, which is made if it is missing.
  """
  folder = user_paths.expand(path)
  with folder_lock.hold(folder):
    _keep(folder, _SETTINGS, settings, may_change=may_change)
  try:
    yield
  except BaseException as error:
    # A job at work there has these settings too.
    is_in_use = isinstance(error, folder_lock.FolderInUseError)
    if not is_in_use and not checkpoints.step_folders(folder):
      for name in (_SETTINGS, _DATA):
        (folder / name).unlink(missing_ok=True)
      with contextlib.suppress(OSError):  # the folder is not empty, or remote
        os.rmdir(folder)
    raise


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
    digests['target'] = contents.digest(target)
  # An older version kept no digest of the target.
  _keep(folder, _DATA, digests, may_lack={'target'})


def trained_length(checkpoint: str) -> int | None:
  """Return the most tokens of the outputs that a checkpoint was trained on.

  None where no settings of a training lie beside it, or none that say so.
  """
  file = user_paths.expand(checkpoint).parent / _SETTINGS
  settings = (json_files.first_object(file) if file.exists() else None) or {}
  with contextlib.suppress(ValueError, SyntaxError, TypeError, KeyError):
    lengths = ast.literal_eval(settings['TASK_FEATURE_LENGTHS'])
    return int(lengths['targets'])
  return None


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
    if names := differing(earlier, values, {*may_change, *added}):
      told = names[:_MOST_SHOWN]
      if name == _SETTINGS:  # digests would tell nothing
        told = [
            f'{x} was {earlier.get(x, "unset")} and is now'
            f' {values.get(x, "unset")}'
            for x in told
        ]
      more = '; and others' if len(names) > _MOST_SHOWN else ''
      raise ValueError(
          f'{folder} has a training with other {file.stem}: {"; ".join(told)}'
          f'{more}. Give the earlier ones, or another folder; {remedy}.'
      )
  text = json.dumps(values, indent=1, sort_keys=True) + '\n'
  whole_files.replace(folder, name, text.encode())


def _digest(arrays: Sequence[np.ndarray]) -> str:
  """Return a digest of the values and shapes of arrays."""
  digest = hashlib.sha256()
  for array in arrays:
    digest.update(f'{array.dtype} {array.shape}\n'.encode())
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()
