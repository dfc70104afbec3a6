# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What identifies a configuration in an output folder, and keeps it valid."""

from collections.abc import Mapping
import dataclasses
import datetime
import hashlib
import json
import pathlib
from typing import Any

from speculative_t5x.research import run_record

# The keys of a record that identify a configuration.
SETTINGS = (
    'job', 'task', 'split', 'num_examples', 'target', 'drafter', 'verification',
    'gamma', 'gamma_policy', 'temperature', 'topk', 'topp', 'minp', 'typicalp',
    'num_decodes', 'seed', 'batch_size', 'inputs_length', 'targets_length',
    'num_valid_tokens', 'device', 'host', 'mesh', 'matmul_precision',
    'simulated_acceptance', 'repeats', 'rounds',
)  # fmt: skip
CODE = ('package_version', 'commit')
# Keys stored with a part, by which its validity is checked on resumption.
ORIGIN = ('created', *CODE)
# Every name of a configuration begins with it.
NAME_PREFIX = 'temperature_'


def settings_of(record: run_record.RunRecord) -> dict[str, Any]:
  """Returns the values of a record that identify its configuration, as JSON."""
  values = dataclasses.asdict(record)
  settings = {key: values[key] for key in SETTINGS}
  return json.loads(json.dumps(settings, allow_nan=False))


def name_of(record: run_record.RunRecord) -> str:
  """Returns the name of a configuration, for its files."""
  settings = json.dumps(settings_of(record))
  digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
  return f'{NAME_PREFIX}{record.temperature:g}_{digest}'


def origin_of(record: run_record.RunRecord) -> dict[str, str | None]:
  """Returns when and by which code a record was made."""
  return {key: getattr(record, key) for key in ORIGIN}


def other_code(found: Mapping[str, Any], settings: run_record.RunRecord) -> str:
  """Returns a note on the code version that measured, if it is another."""
  if all(found[key] == getattr(settings, key) for key in CODE):
    return ''
  return (
      f', measured by version {found["package_version"]}, commit'
      f' {found["commit"]}; remove it to measure again'
  )


def checkpoint_files(settings: run_record.RunRecord) -> str:
  """Returns a digest of the files of all local checkpoints.

  It changes if a checkpoint is replaced, by whatever means: it covers names,
  sizes and times of the last write.
  """
  digest = hashlib.sha256()
  for folder in _local_checkpoints(settings):
    for path in sorted(folder.rglob('*')):
      if path.is_file():
        found = path.stat()
        name = path.relative_to(folder)
        digest.update(f'{name} {found.st_size} {found.st_mtime_ns}\n'.encode())
  return digest.hexdigest()


def last_write(settings: run_record.RunRecord) -> str:
  """Returns the time of the last write to a checkpoint, formatted as `created`.

  If no checkpoint is local, returns an empty text, which sorts before all
  times.
  """
  written = [
      path.stat().st_mtime
      for folder in _local_checkpoints(settings)
      for path in (folder, *folder.iterdir())
      if path.exists()  # not a dangling link
  ]
  if not written:
    return ''
  last = datetime.datetime.fromtimestamp(max(written), datetime.UTC)
  return last.isoformat('T', 'seconds')


def _local_checkpoints(settings: run_record.RunRecord) -> list[pathlib.Path]:
  models = list(filter(None, (settings.target, settings.drafter)))
  paths = [model.checkpoint for model in models]
  if settings.drafter:
    paths.append(settings.drafter.table)
  folders = [pathlib.Path(path) for path in paths if path]
  return [folder for folder in folders if folder.is_dir()]
