# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a job writes: whole files, the merged ones last.

  records/<name>.json         one run record a configuration
  predictions/<name>.jsonl    its predictions
  results.jsonl               all records, written when the job is done
  predictions.jsonl           all predictions, likewise

A folder without `results.jsonl` is that of a job that has not ended. Paths may
be remote, so nothing is appended to and nothing renamed there.
"""

import contextlib
import hashlib
import json
import os

from etils import epath

from speculative_t5x import run_record

_RESULTS, _PREDICTIONS = 'results.jsonl', 'predictions.jsonl'
# What tells one configuration from another within a job.
_NAME_KEYS = ('temperature', 'topk', 'topp', 'gamma', 'seed', 'batch_size')
# Other files in a folder are not the job's to remove.
_NAME_PREFIX = 'temperature_'


class OutputFolder:
  """The folder that a job writes its results to."""

  def __init__(self, path: str | os.PathLike[str]):
    """Makes the folder, and takes away the results of an earlier job.

    Raises:
      OSError: if it cannot be written to.
    """
    self._path = epath.Path(path)
    self._names: list[str] = []  # in the order in which they were added
    try:
      for part in ('records', 'predictions'):
        folder = self._path / part
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f'{_NAME_PREFIX}*'):
          old.unlink()
      for name in (_RESULTS, _PREDICTIONS):
        (self._path / name).unlink(missing_ok=True)
      # Fail before the decoding, not after it.
      probe = self._path / 'records' / 'probe'
      probe.write_text('')
      probe.unlink()
    except OSError as error:
      raise self._cannot_write(error) from error

  def add(
      self, record: run_record.Record, predictions: list[dict[str, object]]
  ) -> None:
    """Writes one configuration's predictions, then its record."""
    name = _configuration_name(record)
    lines = [json.dumps(p, ensure_ascii=False) for p in predictions]
    self._write(f'predictions/{name}.jsonl', lines)
    self._write(f'records/{name}.json', [run_record.to_json(record)])
    self._names.append(name)

  def finish(self) -> epath.Path:
    """Merges what was added, and returns the path of the results."""
    self._merge('predictions/{}.jsonl', _PREDICTIONS)
    return self._merge('records/{}.json', _RESULTS)

  def _merge(self, parts: str, name: str) -> epath.Path:
    texts = [(self._path / parts.format(n)).read_text() for n in self._names]
    # Not `splitlines`, which also breaks at separators within a text.
    return self._write(name, [t.removesuffix('\n') for t in texts])

  def _write(self, name: str, lines: list[str]) -> epath.Path:
    path = self._path / name
    try:
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
  settings = json.dumps({key: record[key] for key in _NAME_KEYS})
  digest = hashlib.sha256(settings.encode()).hexdigest()[:12]
  return f'{_NAME_PREFIX}{record["temperature"]:g}_{digest}'
