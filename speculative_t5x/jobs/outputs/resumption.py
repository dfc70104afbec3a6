# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The identity of a configuration, by which a job that resumes finds its parts.

Records and chunks are found by a name that covers settings, and checkpoints by
their contents.
"""

from collections.abc import Collection, Mapping
from concurrent import futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
from typing import Any

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import user_paths
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
CONTENTS = 'contents'  # the key of digests of models and vocabularies
_REMOTE = *checkpoints.WRITTEN_ANEW, token_counts.FILE_NAME


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
  return found | {CONTENTS: list(map(digest_of, described.paths))}


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


def digest_of(path: str) -> str:
  """Return the digest of a folder's files, or of a model of the hub.

  Local files that are read are digested. In a bucket, where each file costs a
  request and a checkpoint may have thousands, sizes and times stand for those
  that are written anew with any other.
  """
  _, path = checkpoints.fetch(path)
  folder = user_paths.expand(path)
  if user_paths.is_remote(folder):
    files = [x for x in (folder / name for name in _REMOTE) if x.exists()]
    found = [(x.name, y.length, y.mtime) for x in files for y in [x.stat()]]
  else:
    folder = pathlib.Path(folder)
    files = checkpoints.files_in(folder)
    with futures.ThreadPoolExecutor() as pool:
      digests = pool.map(_of_file, files)
      names = (str(file.relative_to(folder)) for file in files)
      found = list(zip(names, digests, strict=True))
  return hashlib.sha256(repr(found).encode()).hexdigest()


def _of_file(file: pathlib.Path) -> str:
  found = file.stat()
  # A change of a file cannot keep its last time.
  state = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
  return _of_state(os.fspath(file), state)


@functools.cache
def _of_state(file: str, state: tuple[int, ...]) -> str:
  del state
  with open(file, 'rb') as opened:
    return hashlib.file_digest(opened, 'sha256').hexdigest()
