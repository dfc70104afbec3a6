# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks of a configuration's predictions, from which a killed job resumes.

A chunk holds the predictions of some batches. It is one file,
`chunks/<configuration>/<number>.jsonl`, that is written as a whole:

  a JSON object     settings, digest of the inputs, origin and measured values
  predictions       as lines of `predictions.jsonl`
  SHA-256           of all lines before; a truncated file has none

A chunk is reused if it is complete, and has the same inputs; the name of the
configuration covers settings, checkpoints and vocabulary by their contents.
"""

import collections
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses
import hashlib
import json
import os
import sys
from typing import Any

from etils import epath

from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record

_FOLDER = 'chunks'
_CHOSEN = 'batch_size', 'mesh'  # by a job for its machine, if not given
# Grows when jobs store other values: chunks of another format are not reused.
_VERSION = 'chunk_format'
_FORMAT = {_VERSION: 4}
# Of the values of a chunk: how many of its inputs have no prediction. A later
# run decodes such a chunk again.
FAILED = 'failed'
# What else the first line of a chunk has beside settings.
_MEASURED = 'inputs_digest', 'values', *resumption.ORIGIN
_PATHS = 'paths'


class OtherSettingsError(ValueError):
  """The folder holds results that were made with other settings."""


@dataclasses.dataclass(frozen=True)
class Content:
  """Rows and counts of a decoded chunk."""

  rows: Sequence[str]  # lines of `predictions.jsonl`
  values: Mapping[str, Any]  # counts and times, as JSON


@dataclasses.dataclass(frozen=True)
class Chunk:
  """A finished chunk, whose rows are in its file."""

  values: Mapping[str, Any]  # counts and times, as JSON
  # When and by which code it was decoded, as keys of a record.
  origin: Mapping[str, Any]


class Chunks:
  """The chunks of one configuration. Iterating over it yields their rows.

  Attributes:
    record: The configuration's record before measurement.
  """

  def __init__(
      self,
      folder: str | os.PathLike[str],
      record: run_record.RunRecord,
      options: Mapping[str, Any],
      title: str,
      paths: Mapping[str, Any] | None = None,
  ):
    """Write nothing yet.

    Chunks depend on the record before measurement, and on options as JSON.
    Printed lines have the title. Of other inputs or models under other paths
    (by default the record's), there may be none in the folder.
    """
    options = {**options, **_FORMAT}
    paths = resumption.paths_of(record) if paths is None else paths
    self._paths = {_PATHS: json.loads(json.dumps(paths))}
    self.record = record
    self._folder = user_paths.expand(folder)
    self._name = f'{_FOLDER}/{resumption.name_of(record, options)}'
    self._settings = resumption.identity_of(record) | options
    self._title = title
    self._num_taken = 0
    self._put: set[int] = set()
    self._is_reuse_said = False

  def take_all(
      self,
      parts: Iterable[tuple[Any, Sequence[Any]]],
      decode: Callable[[Iterator[tuple[int, Any]]], Iterator[Content]],
  ) -> Iterator[Chunk]:
    """Yield all chunks, and write those that are missing.

    Of each part there is what its chunk depends on, as JSON, and its inputs.
    Missing parts are decoded as one stream, so that rows are idle at its end
    alone: `decode` is given their inputs, each with its number among those of
    all parts, and yields the contents in their order.
    """
    # Parts that were read ahead: number, digest, and the chunk if it is there.
    read: collections.deque[tuple[int, str, Chunk | None]]
    read = collections.deque()

    def missing() -> Iterator[tuple[int, Any]]:
      first = 0
      for number, (identity, part) in enumerate(parts):
        digest = digest_of(identity)
        chunk = self.find(number, digest)
        read.append((number, digest, chunk))
        if chunk is None:
          yield from enumerate(part, first)
        first += len(part)

    def finished() -> Iterator[Chunk]:
      while read and read[0][2] is not None:
        self._num_taken += 1
        yield read.popleft()[2]

    for content in decode(missing()):
      yield from finished()
      number, digest, _ = read.popleft()
      chunk = self.put(number, digest, content)
      self._num_taken += 1
      yield chunk
    yield from finished()

  def find(self, number: int, digest: str) -> Chunk | None:
    """Return a finished chunk of inputs with a digest, or None."""
    path = self._path(number)
    if not path.exists():
      return None
    lines, reason = _read(path), None
    header = json.loads(lines[0]) if lines else {}
    if not lines:
      reason = 'is damaged'
    elif header['inputs_digest'] != digest:
      self._check_task(header)
      reason = 'has other inputs'
    elif number not in self._put:
      if header['values'].get(FAILED):
        reason = 'has inputs without a prediction'
      elif not self._is_reuse_said:
        self._is_reuse_said = True
        self._say(f'finished chunks are taken from {path.parent}')
    if reason:
      self._say(f'decoding chunk {number} again, because {path} {reason}')
      return None
    return _chunk(lines[0])

  def put(self, number: int, digest: str, content: Content) -> Chunk:
    """Write a chunk of inputs with a digest; return it."""
    header = {
        **self._settings,
        **self._paths,
        'inputs_digest': digest,
        **resumption.origin_of(self.record),
        'values': content.values,
    }
    lines = [json.dumps(header, allow_nan=False), *content.rows]
    checksum = _digest('\n'.join(lines).encode())
    name = f'{self._name}/{self._path(number).name}'
    whole_files.write(self._folder, name, [*lines, checksum])
    self._put.add(number)
    return _chunk(lines[0])

  def __iter__(self) -> Iterator[str]:
    for path in map(self._path, range(self._num_taken)):
      yield from _read(path)[1:]

  def check_alone(
      self, varying: Collection[str] = (), beside: Collection['Chunks'] = ()
  ) -> None:
    """Check that the folder has no chunks of another configuration.

    Those of another job are left to `output_folder`. A model or vocabulary that
    was replaced at its path is another configuration that may be there. Those
    beside, of the job's other configurations, may differ in settings of the
    names given, those of models included.
    """
    for path in first_files(self._folder):
      header = json_files.first_object(path)
      if header is None or header.get('job') != self.record.job:
        continue
      unused = {*varying, *_MEASURED, _PATHS}
      if header.get(_PATHS) == self._paths[_PATHS]:
        unused.add(resumption.CONTENTS)
      earlier = _without(header, unused)
      changed = [
          resumption.differing(earlier, _without(x._settings, unused))
          for x in (self, *beside)
      ]
      if all(changed):
        theirs = {x: earlier.get(x) for x in changed[0]}
        names = ', '.join(
            x if isinstance(y, Mapping | list) else f'{x} ({y})'
            for x, y in theirs.items()
        )
        raise OtherSettingsError(
            f'{self._folder} holds results with another {names}. Give another'
            ' output folder, or the settings of those results.'
        )

  def _check_task(self, header: Mapping[str, Any]) -> None:
    """Check that other inputs are not those of another file."""
    earlier = header[_PATHS]['task']
    if earlier != self._paths[_PATHS]['task']:
      raise OtherSettingsError(
          f'{self._folder} holds results of {earlier}, which has other inputs.'
          ' Give another output folder.'
      )

  def _path(self, number: int) -> epath.Path:
    return self._folder / self._name / f'{number:06}.jsonl'

  def _say(self, text: str) -> None:
    print(f'{self._title}: {text}', file=sys.stderr)


def first_files(folder: epath.Path) -> list[epath.Path]:
  """Return the first chunk of each configuration in an output folder."""
  each = whole_files.listed(folder / _FOLDER, resumption.NAME_PREFIX)
  return [path for x in each if (path := x / f'{0:06}.jsonl').exists()]


def digest_of(inputs: Any) -> str:
  """Return the digest of inputs, as JSON."""
  return _digest(json.dumps(inputs, allow_nan=False).encode())


def _chunk(first_line: str) -> Chunk:
  """Return a chunk as it is read on resumption, also when it is new."""
  header = json.loads(first_line)
  origin = {key: header[key] for key in resumption.ORIGIN}
  return Chunk(header['values'], origin)


def _without(
    settings: Mapping[str, Any], names: Collection[str]
) -> dict[str, Any]:
  """Return settings without some, those of models included."""
  return {
      key: _without(value, names) if isinstance(value, Mapping) else value
      for key, value in settings.items()
      if key not in names
  }


def _read(path: epath.Path) -> list[str] | None:
  """Return the header and the rows of a chunk; None if it is not complete."""
  complete, _, checksum = path.read_bytes()[:-1].rpartition(b'\n')
  if not complete or checksum.decode(errors='replace') != _digest(complete):
    return None
  return complete.decode().split('\n')


def _digest(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()
