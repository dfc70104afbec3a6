# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks of a configuration's predictions, from which a killed job resumes.

A chunk holds the predictions of some batches. It is one file,
`chunks/<configuration>/<number>.jsonl`, that is written as a whole:

  a JSON object     settings, digest of the inputs, origin and measured values
  predictions       as lines of `predictions.jsonl`
  SHA-256           of all lines before; a truncated file has none

A chunk is reused if it is complete, and has the same settings, inputs and
checkpoint files.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import dataclasses
import hashlib
import json
import os
import sys
from typing import Any

from etils import epath

from speculative_t5x.jobs.outputs import configurations
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record

_FOLDER = 'chunks'
_FIRST = f'{0:06}.jsonl'
# Grows when jobs store other values: chunks of another format are not reused.
_FORMAT = {'chunk_format': 3}


class OtherSettingsError(ValueError):
  """The folder holds results that were made with other settings."""


@dataclasses.dataclass(frozen=True)
class Content:
  """What is decoded for a chunk.

  Attributes:
    rows: lines of `predictions.jsonl`.
    values: counts and times, as JSON.
  """

  rows: Sequence[str]
  values: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Chunk:
  """A finished chunk.

  Attributes:
    header: settings, origin and 'values'.
    rows: lines of `predictions.jsonl`.
  """

  header: Mapping[str, Any]
  rows: Sequence[str]

  @property
  def values(self) -> Mapping[str, Any]:
    return self.header['values']

  @property
  def origin(self) -> dict[str, Any]:
    """When and by which code the chunk was decoded, as keys of a record."""
    return {key: self.header[key] for key in configurations.ORIGIN}


class Chunks:
  """The chunks of one configuration. Iterating over it yields their rows.

  Attributes:
    record: the configuration's, before measurement.
  """

  def __init__(
      self,
      folder: str | os.PathLike[str],
      record: run_record.RunRecord,
      options: Mapping[str, Any],
      title: str,
  ):
    """Writes nothing yet.

    Args:
      folder: output folder of the job; may be remote.
      record: the configuration's record before measurement.
      options: further settings that chunks depend on, as JSON.
      title: title of the configuration, for printed lines.
    """
    self._folder = epath.Path(folder)
    self._name = f'{_FOLDER}/{configurations.name_of(record)}'
    self.record = record
    self._settings = configurations.settings_of(record) | options | _FORMAT
    self._checkpoint_files = configurations.checkpoint_files(record)
    self._title = title
    self._num_taken = 0
    self._is_reuse_said = False

  def take(
      self, number: int, inputs: Any, decode: Callable[[], Content]
  ) -> Chunk:
    """Returns a chunk of an earlier run, or decodes and writes it.

    Args:
      number: of the chunk, from 0 on, one after another.
      inputs: what is decoded, as JSON.
      decode: decodes the inputs; called unless the chunk is reused.
    Raises:
      OSError: if the chunk cannot be written.
    """
    digest = _digest(json.dumps(inputs, allow_nan=False))
    path = self._folder / self._file(number)
    chunk = _read(path) if path.exists() else None
    if path.exists() and (reason := self._why_not(chunk, digest)):
      self._say(f'decoding chunk {number} again, because {path} {reason}')
      chunk = None
    if chunk is None:
      chunk = self._write(number, digest, decode())
    elif not self._is_reuse_said:
      self._is_reuse_said = True
      note = configurations.other_code(chunk.header, self.record)
      self._say(f'finished chunks are taken from {path.parent}{note}')
    self._num_taken = number + 1
    return chunk

  def __iter__(self) -> Iterator[str]:
    for number in range(self._num_taken):
      path = self._folder / self._file(number)
      chunk = _read(path)
      if chunk is None:
        raise ValueError(
            f'{path} was changed while the job ran. Run the job again, which'
            ' decodes it again.'
        )
      yield from chunk.rows

  def _file(self, number: int) -> str:
    return f'{self._name}/{number:06}.jsonl'

  def _why_not(self, chunk: Chunk | None, digest: str) -> str | None:
    """Returns why an existing chunk cannot be reused, None if it can."""
    if chunk is None:
      return 'is damaged'
    if changed := _differing(chunk.header, self._settings):
      return f'has another {", ".join(changed)}'
    if chunk.header['inputs_digest'] != digest:
      return 'has other inputs'
    if chunk.header['checkpoint_files'] != self._checkpoint_files:
      return 'is of other checkpoints'
    return None

  def _write(self, number: int, digest: str, content: Content) -> Chunk:
    header = {
        **self._settings,
        'inputs_digest': digest,
        'checkpoint_files': self._checkpoint_files,
        **configurations.origin_of(self.record),
        'values': content.values,
    }
    lines = [json.dumps(header, allow_nan=False), *content.rows]
    lines.append(_digest(*lines))
    whole_files.write(self._folder, self._file(number), lines)
    # As it is read on resumption, so that both give the same results.
    return Chunk(json.loads(lines[0]), content.rows)

  def _say(self, text: str) -> None:
    print(f'{self._title}: {text}', file=sys.stderr)

  def check_alone(self, varying: Collection[str] = ()) -> None:
    """Checks that the folder has no chunks of another configuration.

    Those of another job are left to `output_folder`.

    Args:
      varying: names of settings in which the configurations of one folder may
        differ.
    Raises:
      OtherSettingsError: if it has; names the settings that differ.
    """
    settings = _without(self._settings, varying)
    for path in first_files(self._folder):
      header = whole_files.first_object(path)
      if header is None or header.get('job') != settings['job']:
        continue
      if changed := _differing(_without(header, varying), settings):
        raise OtherSettingsError(
            f'{self._folder} holds results with another {", ".join(changed)}.'
            ' Give another output folder, or the settings of those results.'
        )


def first_files(folder: epath.Path) -> list[epath.Path]:
  """Returns the first chunk of each configuration in an output folder."""
  each = whole_files.listed(folder / _FOLDER, configurations.NAME_PREFIX)
  return [path for part in each if (path := part / _FIRST).exists()]


def _without(
    settings: Mapping[str, Any], names: Collection[str]
) -> dict[str, Any]:
  """Returns settings without some, those of models included."""
  return {
      key: _without(value, names) if isinstance(value, Mapping) else value
      for key, value in settings.items()
      if key not in names
  }


def _differing(
    header: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[str]:
  return [key for key, value in settings.items() if header.get(key) != value]


def _read(path: epath.Path) -> Chunk | None:
  """Returns a chunk, or None if the file is not complete."""
  lines = path.read_bytes().split(b'\n')
  if len(lines) < 3 or lines[-1] or lines[-2] != _digest_of(lines[:-2]):
    return None
  header, *rows = [line.decode() for line in lines[:-2]]
  return Chunk(json.loads(header), rows)


def _digest(*lines: str) -> str:
  return _digest_of([line.encode() for line in lines]).decode()


def _digest_of(lines: Sequence[bytes]) -> bytes:
  return hashlib.sha256(b'\n'.join(lines)).hexdigest().encode()
