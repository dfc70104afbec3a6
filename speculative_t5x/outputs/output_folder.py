# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of a job's output folder.

  records/<name>.json         one run record per configuration
  predictions/<name>.jsonl    its predictions, if the job writes any
  <part>/<name>.json          values that several configurations share
  results.jsonl               all records, written when the job is done
  predictions.jsonl           all predictions, written when the job is done

A folder without `results.jsonl` belongs to an unfinished job. A folder belongs
to one job, which can clear it or resume in it. A job resumed with fewer
configurations merges only those; `records` keeps all of them. Folders may be
remote, so files are written as a whole, never appended to or renamed.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import sys

from etils import epath

from speculative_t5x import run_record

_RESULTS, _PREDICTIONS = 'results.jsonl', 'predictions.jsonl'
# The keys of a record that identify a configuration.
SETTINGS = (
    'job', 'task', 'split', 'num_examples', 'target', 'drafter', 'verification',
    'gamma', 'temperature', 'topk', 'topp', 'num_decodes', 'seed',
    'batch_size', 'inputs_length', 'targets_length', 'device', 'host', 'mesh',
    'matmul_precision', 'simulated_acceptance', 'repeats', 'rounds',
)  # fmt: skip
_CODE = ('package_version', 'commit')
# Keys stored with a part, by which its validity is checked on resumption.
_ORIGIN = ('created', *_CODE)
# The job removes only files with this prefix.
_NAME_PREFIX = 'temperature_'


class OutputFolder:
  """The output folder of a job."""

  def __init__(self, path: str | os.PathLike[str], job: str):
    """Makes the folder; records of an earlier run are kept but not merged.

    Args:
      path: path of the folder; may be remote.
      job: name of the job in its records.
    Raises:
      ValueError: if the folder has results of another job; they are kept.
      OSError: if the folder cannot be written to.
    """
    self._path = epath.Path(path)
    self._check_no_other(job)
    self._names: list[str] = []  # in the order in which they were added
    self._names_predicted: list[str] = []
    try:
      (self._path / 'records').mkdir(parents=True, exist_ok=True)
      for name in (_RESULTS, _PREDICTIONS):
        (self._path / name).unlink(missing_ok=True)
      # Fail before decoding, not after it.
      probe = self._path / 'records' / 'probe'
      probe.write_text('')
      probe.unlink()
    except OSError as error:
      raise cannot_write(self._path, error) from error

  def _check_no_other(self, job: str) -> None:
    records = (self._path / 'records').glob(f'{_NAME_PREFIX}*')
    for path in (self._path / _RESULTS, *records):
      found = _first_object(path) if path.exists() else None
      other = (found or {}).get('job', job)
      if other != job:
        raise ValueError(
            f'{self._path} has results of another job, {other}. Give another'
            ' output folder.'
        )

  def clear(self) -> None:
    """Removes the records and predictions of an earlier run."""
    try:
      for part in ('records', 'predictions'):
        if not (self._path / part).exists():
          continue
        for old in (self._path / part).glob(f'{_NAME_PREFIX}*'):
          old.unlink()
    except OSError as error:
      raise cannot_write(self._path, error) from error

  def find(
      self, settings: run_record.RunRecord, title: str, total: int
  ) -> run_record.RunRecord | None:
    """Returns a configuration's record from an earlier run, or None.

    Returns None also if the record is damaged or older than a local checkpoint
    of its target or draft. Prints a line on stderr that says whether the record
    is reused, and by which code version if it is another. A reused record must
    be added again to be merged.

    Args:
      settings: the configuration's record before measurement.
      title: title of the configuration, for the printed line.
      total: total number of configurations.
    """
    title = f'configuration {len(self._names) + 1} of {total}: {title}'
    found = self._take('records', settings, run_record.KEYS, title)
    return found and run_record.from_dict(found)

  def add(
      self,
      record: run_record.RunRecord,
      predictions: list[dict[str, object]] | None = None,
  ) -> None:
    """Writes a configuration's predictions, if any, and then its record."""
    name = _configuration_name(record)
    if predictions is not None:
      lines = [json.dumps(p, ensure_ascii=False) for p in predictions]
      self._write(f'predictions/{name}.jsonl', lines)
      self._names_predicted.append(name)
    self._write(f'records/{name}.json', [run_record.to_json(record)])
    self._names.append(name)

  def read_part(
      self,
      part: str,
      settings: run_record.RunRecord,
      keys: Sequence[str],
      title: str,
  ) -> dict[str, object] | None:
    """Returns the values that `write_part` wrote for the settings, or None.

    Prints a line on stderr, as `find` does.

    Args:
      part: name of the part.
      settings: the configuration's record before measurement.
      keys: keys that the part must have.
      title: title of the measurement, for the printed line.
    """
    found = self._take(part, settings, (*keys, *_ORIGIN), title)
    return found and {key: found[key] for key in keys}

  def write_part(
      self, part: str, settings: run_record.RunRecord, values: dict[str, object]
  ) -> None:
    """Writes values that several configurations share, for resumption."""
    name = f'{part}/{_configuration_name(settings)}.json'
    origin = {key: getattr(settings, key) for key in _ORIGIN}
    self._write(name, [json.dumps(values | origin)])

  def add_text(self, name: str, text: str) -> epath.Path:
    """Writes a file beside the results."""
    return self._write(name, [text.rstrip('\n')])

  def finish(self) -> epath.Path:
    """Merges the added records and predictions; returns the results' path."""
    if self._names_predicted:
      parts = [f'predictions/{name}.jsonl' for name in self._names_predicted]
      self._merge(parts, _PREDICTIONS)
    return self._merge([f'records/{n}.json' for n in self._names], _RESULTS)

  def _merge(self, parts: list[str], name: str) -> epath.Path:
    texts = [(self._path / part).read_text() for part in parts]
    # Not `splitlines`, which would also split at Unicode line separators.
    return self._write(name, [t.removesuffix('\n') for t in texts])

  def _take(
      self,
      part: str,
      settings: run_record.RunRecord,
      keys: Sequence[str],
      title: str,
  ) -> dict[str, object] | None:
    """Returns an earlier run's values if they are complete and still valid."""
    path = self._path / part / f'{_configuration_name(settings)}.json'
    found, said = None, 'compiling and measuring'
    if path.exists():
      found = _first_object(path)
      if found is None or not set(keys) <= found.keys():
        found, said = None, f'measuring again, because {path} is damaged'
      elif found['created'] < _last_write(settings):
        found, said = None, 'measuring again, because a checkpoint is newer'
      else:
        said = f'taken from {path}{_other_code(found, settings)}'
    print(f'{title}: {said}', file=sys.stderr)
    return found

  def _write(self, name: str, lines: list[str]) -> epath.Path:
    path = self._path / name
    try:
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text(''.join(line + '\n' for line in lines))
    except OSError as error:
      # A truncated file must not pass for a complete one.
      with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
      raise cannot_write(self._path, error) from error
    return path


def cannot_write(path: epath.Path, error: OSError) -> OSError:
  """Returns an error for an output folder that cannot be written to.

  Args:
    path: path of the folder.
    error: the error of the write.
  """
  reason = error.strerror or ' '.join(str(error).split())
  if isinstance(error, FileExistsError | NotADirectoryError):
    reason = 'it or one of its parents is a file'
  return OSError(
      f'The output folder {path} cannot be written to ({reason}). Give another'
      ' one, or check its free space and permissions.'
  )


def _first_object(path: epath.Path) -> dict[str, object] | None:
  """Returns the JSON object at the start of a file, or None."""
  # A job that is killed during a write leaves a truncated file.
  with contextlib.suppress(ValueError, RecursionError):
    value, _ = json.JSONDecoder().raw_decode(path.read_text())
    return value if isinstance(value, dict) else None
  return None


def _other_code(found, settings: run_record.RunRecord) -> str:
  """Returns a note on the code version that measured, if it is another."""
  if all(found[key] == getattr(settings, key) for key in _CODE):
    return ''
  return (
      f', measured by version {found["package_version"]}, commit'
      f' {found["commit"]}; remove it to measure again'
  )


def _last_write(settings: run_record.RunRecord) -> str:
  """Returns the time of the last write to a checkpoint, formatted as `created`.

  If no checkpoint is local, returns an empty text, which sorts before all
  times.
  """
  models = filter(None, (settings.target, settings.drafter))
  folders = [pathlib.Path(m.checkpoint) for m in models if m.checkpoint]
  written = [
      path.stat().st_mtime
      for folder in folders
      if folder.is_dir()
      for path in (folder, *folder.iterdir())
      if path.exists()  # not a dangling link
  ]
  if not written:
    return ''
  last = datetime.datetime.fromtimestamp(max(written), datetime.UTC)
  return last.isoformat('T', 'seconds')


def _configuration_name(record: run_record.RunRecord) -> str:
  values = dataclasses.asdict(record)
  settings = json.dumps({key: values[key] for key in SETTINGS})
  digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
  return f'{_NAME_PREFIX}{record.temperature:g}_{digest}'
