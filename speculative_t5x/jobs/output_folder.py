# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a job writes: whole files, the merged ones last.

  records/<name>.json         one run record a configuration
  predictions/<name>.jsonl    its predictions, of a job that writes any
  results.jsonl               all records, written when the job is done
  predictions.jsonl           all predictions, likewise

A folder without `results.jsonl` is that of a job that has not ended. A job may
clear what it finds there, or resume it. Paths may be remote, so nothing is
appended to and nothing renamed there.
"""

import contextlib
import hashlib
import json
import os
import sys

from etils import epath

from speculative_t5x import run_record

_RESULTS, _PREDICTIONS = 'results.jsonl', 'predictions.jsonl'
# What tells one configuration from another: what was measured, and where.
SETTINGS = (
    'job', 'task', 'split', 'num_examples', 'target', 'drafter', 'verification',
    'gamma', 'temperature', 'topk', 'topp', 'num_decodes', 'seed',
    'batch_size', 'inputs_length', 'targets_length', 'device', 'host', 'mesh',
    'matmul_precision', 'simulated_acceptance', 'repeats', 'rounds',
)  # fmt: skip
_CODE = ('package_version', 'commit')
# Other files in a folder are not the job's to remove.
_NAME_PREFIX = 'temperature_'


class OutputFolder:
  """The folder that a job writes its results to."""

  def __init__(self, path: str | os.PathLike[str]):
    """Makes the folder. What an earlier job finished is kept, but not merged.

    Raises:
      OSError: if it cannot be written to.
    """
    self._path = epath.Path(path)
    self._names: list[str] = []  # in the order in which they were added
    self._names_predicted: list[str] = []
    try:
      (self._path / 'records').mkdir(parents=True, exist_ok=True)
      for name in (_RESULTS, _PREDICTIONS):
        (self._path / name).unlink(missing_ok=True)
      # Fail before the decoding, not after it.
      probe = self._path / 'records' / 'probe'
      probe.write_text('')
      probe.unlink()
    except OSError as error:
      raise self._cannot_write(error) from error

  def clear(self) -> None:
    """Takes away what an earlier job finished."""
    try:
      for part in ('records', 'predictions'):
        if not (self._path / part).exists():
          continue
        for old in (self._path / part).glob(f'{_NAME_PREFIX}*'):
          old.unlink()
    except OSError as error:
      raise self._cannot_write(error) from error

  def find(self, settings: run_record.Record) -> run_record.Record | None:
    """The record of a configuration that an earlier job finished.

    To be merged with the others it must be added again. One that other code
    measured is told of.

    Args:
      settings: a record before anything is measured.
    """
    name = f'records/{_configuration_name(settings)}.json'
    record = self._read(name)
    if record and any(record[key] != settings[key] for key in _CODE):
      print(
          f'{self._path / name} was measured by version'
          f' {record["package_version"]}, commit {record["commit"]}, and is'
          ' kept. Remove it to measure anew.',
          file=sys.stderr,
      )
    return record

  def add(
      self,
      record: run_record.Record,
      predictions: list[dict[str, object]] | None = None,
  ) -> None:
    """Writes one configuration's predictions, if any, then its record."""
    name = _configuration_name(record)
    if predictions is not None:
      lines = [json.dumps(p, ensure_ascii=False) for p in predictions]
      self._write(f'predictions/{name}.jsonl', lines)
      self._names_predicted.append(name)
    self._write(f'records/{name}.json', [run_record.to_json(record)])
    self._names.append(name)

  def read_part(
      self, part: str, settings: run_record.Record
  ) -> dict[str, object] | None:
    """What `write_part` wrote for these settings, None if it did not."""
    return self._read(f'{part}/{_configuration_name(settings)}.json')

  def write_part(
      self, part: str, settings: run_record.Record, values: dict[str, object]
  ) -> None:
    """Keeps what several configurations share, for a job that is resumed."""
    name = f'{part}/{_configuration_name(settings)}.json'
    self._write(name, [json.dumps(values)])

  def add_text(self, name: str, text: str) -> epath.Path:
    """Writes a file beside the results."""
    return self._write(name, [text.rstrip('\n')])

  def finish(self) -> epath.Path:
    """Merges what was added, and returns the path of the results."""
    if self._names_predicted:
      parts = [f'predictions/{name}.jsonl' for name in self._names_predicted]
      self._merge(parts, _PREDICTIONS)
    return self._merge([f'records/{n}.json' for n in self._names], _RESULTS)

  def _merge(self, parts: list[str], name: str) -> epath.Path:
    texts = [(self._path / part).read_text() for part in parts]
    # Not `splitlines`, which also breaks at separators within a text.
    return self._write(name, [t.removesuffix('\n') for t in texts])

  def _read(self, name: str) -> dict[str, object] | None:
    path = self._path / name
    if not path.exists():
      return None
    # A job that was killed while it wrote leaves half a file.
    with contextlib.suppress(ValueError):
      return json.loads(path.read_text())
    return None

  def _write(self, name: str, lines: list[str]) -> epath.Path:
    path = self._path / name
    try:
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text(''.join(line + '\n' for line in lines))
    except OSError as error:
      # A file that was cut short must not look whole.
      with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
      raise self._cannot_write(error) from error
    return path

  def _cannot_write(self, error: OSError) -> OSError:
    return OSError(
        f'The output folder {self._path} cannot be written to'
        f' ({error.strerror or error}). Give another one, or the space and the'
        ' rights to write there.'
    )


def _configuration_name(record: run_record.Record) -> str:
  settings = json.dumps({key: record[key] for key in SETTINGS})
  digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
  return f'{_NAME_PREFIX}{record["temperature"]:g}_{digest}'
