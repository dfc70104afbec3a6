# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chunks of a configuration's predictions, from which a killed job resumes.

A chunk holds the predictions of some batches. It is one file,
`chunks/<configuration>/<number>.jsonl`, that is written as a whole:

  a JSON object     settings, digest of the inputs, origin and measured values
  predictions       as lines of `predictions.jsonl`
  SHA-256           of all lines before; a truncated file has none

A chunk is reused if it is complete, and has the same inputs; the name of the
configuration covers settings and checkpoint files.
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
from speculative_t5x.jobs.outputs import resumption
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
class Chunk(Content):
  """A finished chunk.

  Attributes:
    origin: when and by which code it was decoded, as keys of a record.
  """

  origin: Mapping[str, Any]


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
    options = {**options, **_FORMAT}
    self._name = f'{_FOLDER}/{configurations.name_of(record, options)}'
    self.record = record
    self._settings = configurations.settings_of(record) | options
    self._title = title
    self._num_taken = 0
    self._is_reuse_said = False

  def take(
      self, number: int, inputs: Any, decode: Callable[[], Content]
  ) -> Chunk:
    """Returns a chunk of an earlier run, or decodes and writes it.

    Args:
      number: number of the chunk, from 0 on, one after another.
      inputs: what is decoded, as JSON.
      decode: decodes the inputs; called unless the chunk is reused.
    Raises:
      OSError: if the chunk cannot be written.
    """
    digest = _digest(json.dumps(inputs, allow_nan=False).encode())
    name = self._file(number)
    path = self._folder / name
    lines = _read(path) if path.exists() else None
    is_reused = lines is not None and _header(lines)['inputs_digest'] == digest
    if not is_reused:
      if path.exists():
        reason = 'is damaged' if lines is None else 'has other inputs'
        self._say(f'decoding chunk {number} again, because {path} {reason}')
      content = decode()
      header = {
          **self._settings,
          'inputs_digest': digest,
          **configurations.origin_of(self.record),
          'values': content.values,
      }
      lines = [json.dumps(header, allow_nan=False), *content.rows]
      checksum = _digest('\n'.join(lines).encode())
      whole_files.write(self._folder, name, [*lines, checksum])
    # As it is read on resumption, so that both give the same results.
    header = _header(lines)
    if is_reused and not self._is_reuse_said:
      self._is_reuse_said = True
      note = configurations.other_code(header, self.record)
      self._say(f'finished chunks are taken from {path.parent}{note}')
    self._num_taken = number + 1
    origin = {key: header[key] for key in configurations.ORIGIN}
    return Chunk(lines[1:], header['values'], origin)

  def __iter__(self) -> Iterator[str]:
    for number in range(self._num_taken):
      path = self._folder / self._file(number)
      lines = _read(path)
      if lines is None:
        raise ValueError(
            f'{path} was changed while the job ran. Run the job again, which'
            ' decodes it again.'
        )
      yield from lines[1:]

  def _file(self, number: int) -> str:
    return f'{self._name}/{number:06}.jsonl'

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
      earlier = {key: header.get(key) for key in settings}
      if changed := resumption.differing(_without(earlier, varying), settings):
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


def _read(path: epath.Path) -> list[str] | None:
  """Returns the header and the rows of a chunk; None if it is not complete."""
  complete, _, checksum = path.read_bytes()[:-1].rpartition(b'\n')
  if not complete or checksum.decode(errors='replace') != _digest(complete):
    return None
  return complete.decode().split('\n')


def _header(lines: Sequence[str]) -> dict[str, Any]:
  return json.loads(lines[0])


def _digest(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()
