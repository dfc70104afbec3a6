# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of a job's output folder.

  records/<name>.json            one run record per configuration
  chunks/<name>/<number>.jsonl   its predictions, see `chunks`
  <part>/<name>.json             values that several configurations share
  predictions.jsonl              all predictions, written at the end
  results.jsonl                  all records, written last

A folder without `results.jsonl` belongs to an unfinished job. A folder belongs
to one kind of job, which can resume in it. A job resumed with fewer
configurations merges only those; `records` and `chunks` keep all of them.
"""

from collections.abc import Iterable, Sequence
import itertools
import json
import os
import sys

from etils import epath

from speculative_t5x.jobs.outputs import chunks
from speculative_t5x.jobs.outputs import configurations
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record

_RESULTS, _PREDICTIONS = 'results.jsonl', 'predictions.jsonl'


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
    self._predictions: list[Iterable[str]] = []
    whole_files.check_writable(self._path / 'records')
    with whole_files.writing(self._path):
      for name in (_RESULTS, _PREDICTIONS):
        (self._path / name).unlink(missing_ok=True)

  def _check_no_other(self, job: str) -> None:
    records = whole_files.listed(
        self._path / 'records', configurations.NAME_PREFIX
    )
    firsts = chunks.first_files(self._path)
    for path in (self._path / _RESULTS, *records, *firsts):
      found = whole_files.first_object(path) if path.exists() else None
      other = (found or {}).get('job', job)
      if other != job:
        raise ValueError(
            f'{self._path} has results of another job, {other}. Give another'
            ' output folder.'
        )

  def find(
      self, settings: run_record.RunRecord, title: str, total: int
  ) -> run_record.RunRecord | None:
    """Returns a configuration's record from an earlier run, or None.

    Returns None also if the record is damaged, or if a local checkpoint of its
    target or draft was replaced. Prints a line on stderr that says whether the
    record is reused, and by which code version if it is another. A reused
    record must be added again to be merged.

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
      predictions: Iterable[str] | None = None,
  ) -> None:
    """Writes a configuration's record.

    Args:
      record: record of the configuration.
      predictions: lines of `predictions.jsonl`, read when the job is done.
    """
    name = configurations.name_of(record)
    self._write(f'records/{name}.json', [run_record.to_json(record)])
    self._names.append(name)
    if predictions is not None:
      self._predictions.append(predictions)

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
    found = self._take(part, settings, (*keys, *configurations.ORIGIN), title)
    return found and {key: found[key] for key in keys}

  def write_part(
      self, part: str, settings: run_record.RunRecord, values: dict[str, object]
  ) -> None:
    """Writes values that several configurations share, for resumption."""
    name = f'{part}/{configurations.name_of(settings)}.json'
    origin = configurations.origin_of(settings)
    self._write(name, [json.dumps(values | origin, allow_nan=False)])

  def add_text(self, name: str, text: str) -> epath.Path:
    """Writes a file beside the results."""
    return self._write(name, [text.rstrip('\n')])

  def finish(self) -> epath.Path:
    """Merges the added predictions and records; returns the results' path."""
    if self._predictions:
      rows = itertools.chain.from_iterable(self._predictions)
      self._write(_PREDICTIONS, rows)
    parts = [self._path / f'records/{name}.json' for name in self._names]
    # Not `splitlines`, which would also split at Unicode line separators.
    texts = (part.read_text(encoding='utf-8') for part in parts)
    records = (text.removesuffix('\n') for text in texts)
    return self._write(_RESULTS, records)

  def _take(
      self,
      part: str,
      settings: run_record.RunRecord,
      keys: Sequence[str],
      title: str,
  ) -> dict[str, object] | None:
    """Returns an earlier run's values if they are complete."""
    path = self._path / part / f'{configurations.name_of(settings)}.json'
    found, said = None, 'compiling and measuring'
    if path.exists():
      found = whole_files.first_object(path)
      if found is None or not set(keys) <= found.keys():
        found, said = None, f'measuring again, because {path} is damaged'
      else:
        said = f'taken from {path}{configurations.other_code(found, settings)}'
    print(f'{title}: {said}', file=sys.stderr)
    return found

  def _write(self, name: str, lines: Iterable[str]) -> epath.Path:
    return whole_files.write(self._path, name, lines)
