# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a job writes: whole files, the merged ones last.

  records/<name>.json         one run record a configuration
  predictions/<name>.jsonl    its predictions, of a job that writes any
  <part>/<name>.json          what several configurations share
  results.jsonl               all records, written when the job is done
  predictions.jsonl           all predictions, likewise

A folder without `results.jsonl` is that of a job that has not ended. A folder
is one job's, which may clear what it finds there, or resume it. A job resumed
with fewer configurations merges those alone; `records` keeps all of them. Paths
may be remote, so nothing is appended to and nothing renamed there.
"""

from collections.abc import Sequence
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
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
# What is kept beside a part, to tell whether it still holds.
_ORIGIN = ('created', *_CODE)
# Other files in a folder are not the job's to remove.
_NAME_PREFIX = 'temperature_'


class OutputFolder:
  """The folder that a job writes its results to."""

  def __init__(self, path: str | os.PathLike[str], job: str):
    """Makes the folder. What an earlier job finished is kept, but not merged.

    Args:
      path: of the folder.
      job: as its records name it.
    Raises:
      ValueError: if it holds results of another job; they are left alone.
      OSError: if it cannot be written to.
    """
    self._path = epath.Path(path)
    self._check_no_other(job)
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
      raise cannot_write(self._path, error) from error

  def _check_no_other(self, job: str) -> None:
    records = (self._path / 'records').glob(f'{_NAME_PREFIX}*')
    for path in (self._path / _RESULTS, *records):
      found = _first_object(path) if path.exists() else None
      other = (found or {}).get('job', job)
      if other != job:
        raise ValueError(
            f'{self._path} holds results of another job, {other}. Give another'
            ' output folder.'
        )

  def clear(self) -> None:
    """Takes away what an earlier job finished."""
    try:
      for part in ('records', 'predictions'):
        if not (self._path / part).exists():
          continue
        for old in (self._path / part).glob(f'{_NAME_PREFIX}*'):
          old.unlink()
    except OSError as error:
      raise cannot_write(self._path, error) from error

  def find(
      self, settings: run_record.Record, title: str, total: int
  ) -> run_record.Record | None:
    """The record of a configuration that an earlier job finished.

    None for one that is damaged, or older than its target's or its draft's
    checkpoint on this machine. To be merged with the others it must be added
    again. A line on stderr says whether it was taken, and which code measured
    it if it was other code.

    Args:
      settings: a record before anything is measured.
      title: of the configuration, for that line.
      total: how many configurations are added in all.
    """
    title = f'configuration {len(self._names) + 1} of {total}: {title}'
    return self._take('records', settings, run_record.KEYS, title)

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
      self,
      part: str,
      settings: run_record.Record,
      keys: Sequence[str],
      title: str,
  ) -> dict[str, object] | None:
    """What `write_part` wrote for these settings, None if it did not.

    A line on stderr says so, as for `find`.

    Args:
      part: its name.
      settings: a record before anything is measured.
      keys: that it must have.
      title: of what is measured, for that line.
    """
    found = self._take(part, settings, (*keys, *_ORIGIN), title)
    return found and {key: found[key] for key in keys}

  def write_part(
      self, part: str, settings: run_record.Record, values: dict[str, object]
  ) -> None:
    """Keeps what several configurations share, for a job that is resumed."""
    name = f'{part}/{_configuration_name(settings)}.json'
    origin = {key: settings[key] for key in _ORIGIN}
    self._write(name, [json.dumps(values | origin)])

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

  def _take(
      self,
      part: str,
      settings: run_record.Record,
      keys: Sequence[str],
      title: str,
  ) -> dict[str, object] | None:
    """What an earlier job wrote, if it has all keys and still holds."""
    path = self._path / part / f'{_configuration_name(settings)}.json'
    found, said = None, 'compiling and measuring'
    if path.exists():
      found = _first_object(path)
      if found is None or not set(keys) <= found.keys():
        found, said = None, f'measuring again, for {path} is damaged'
      elif found['created'] < _last_write(settings):
        found, said = None, 'measuring again, for a checkpoint is newer'
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
      # A file that was cut short must not look whole.
      with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
      raise cannot_write(self._path, error) from error
    return path


def cannot_write(path: epath.Path, error: OSError) -> OSError:
  """An error that names the folder which the given one came from."""
  reason = error.strerror or ' '.join(str(error).split())
  if isinstance(error, FileExistsError | NotADirectoryError):
    reason = 'it is a file, or lies in one'
  return OSError(
      f'The output folder {path} cannot be written to ({reason}). Give another'
      ' one, or the space and the rights to write there.'
  )


def _first_object(path: epath.Path) -> dict[str, object] | None:
  """The first JSON object of a file, None for anything else."""
  # A job that was killed while it wrote leaves half a file.
  with contextlib.suppress(ValueError, RecursionError):
    value, _ = json.JSONDecoder().raw_decode(path.read_text())
    return value if isinstance(value, dict) else None
  return None


def _other_code(found, settings: run_record.Record) -> str:
  """What code measured, if it was not this one."""
  if all(found[key] == settings[key] for key in _CODE):
    return ''
  return (
      f', which version {found["package_version"]}, commit {found["commit"]},'
      ' measured; remove it to measure anew'
  )


def _last_write(settings: run_record.Record) -> str:
  """When a checkpoint was last written, as `created` says it.

  An empty text, earlier than all, for those that are not on this machine.
  """
  models = filter(None, (settings['target'], settings['drafter']))
  folders = [pathlib.Path(m['checkpoint']) for m in models if m['checkpoint']]
  written = [
      path.stat().st_mtime
      for folder in folders
      if folder.is_dir()
      for path in (folder, *folder.iterdir())
      if path.exists()  # and is no link to nothing
  ]
  if not written:
    return ''
  last = datetime.datetime.fromtimestamp(max(written), datetime.UTC)
  return last.isoformat('T', 'seconds')


def _configuration_name(record: run_record.Record) -> str:
  settings = json.dumps({key: record[key] for key in SETTINGS})
  digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
  return f'{_NAME_PREFIX}{record["temperature"]:g}_{digest}'
