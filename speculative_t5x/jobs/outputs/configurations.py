# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What identifies a configuration in an output folder."""

from collections.abc import Mapping
import dataclasses
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
# When and by which code a part was measured; stored with it.
ORIGIN = ('created', *CODE)
# Every name of a configuration begins with it.
NAME_PREFIX = 'temperature_'


def settings_of(record: run_record.RunRecord) -> dict[str, Any]:
  """Returns the values of a record that identify its configuration, as JSON."""
  values = dataclasses.asdict(record)
  settings = {key: values[key] for key in SETTINGS}
  if record.draft_sampling:  # left out otherwise, as earlier versions did
    settings['draft_sampling'] = values['draft_sampling']
  return json.loads(json.dumps(settings, allow_nan=False))


def name_of(
    record: run_record.RunRecord, options: Mapping[str, Any] | None = None
) -> str:
  """Returns the name of a configuration, for its files.

  It is another one if a local checkpoint is replaced, by whatever means, so
  that what was measured with the earlier checkpoint is not found.

  Args:
    record: the record before measurement.
    options: further settings of the configuration, as JSON.
  """
  identity = [settings_of(record), options or {}, _checkpoint_files(record)]
  digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]
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


def _checkpoint_files(settings: run_record.RunRecord) -> list[Any]:
  """Returns names, sizes and last writes of the files of local checkpoints."""
  paths = [x.checkpoint for x in (settings.target, settings.drafter) if x]
  if settings.drafter:
    paths.append(settings.drafter.table)
  return [
      [str(file.relative_to(path)), status.st_size, status.st_mtime_ns]
      for path in filter(None, paths)
      for file in sorted(pathlib.Path(path).rglob('*'))
      if file.is_file() and (status := file.stat())
  ]
