# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of a job's output folder.

  records/<name>.json            one run record per configuration
  chunks/<name>/<number>.jsonl   its predictions, see `chunks`
  alpha/<name>.json              alpha, which several configurations share
  predictions.jsonl              all predictions, written at the end
  output.jsonl, errors.jsonl     of a batch, in the place of predictions
  results.jsonl                  all records, written last

A folder without `results.jsonl` belongs to an unfinished job. A folder belongs
to one kind of job, which can resume in it. A job resumed with fewer
configurations merges only those; `records` and `chunks` keep all of them.
"""

from collections.abc import Collection, Iterable, Sequence
import itertools
import json
import os
import sys

from etils import epath

from speculative_t5x.jobs.outputs import chunks
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record

PREDICTIONS = 'predictions.jsonl'
OUTPUT, ERRORS = 'output.jsonl', 'errors.jsonl'  # of a batch
_RESULTS = 'results.jsonl'
_RECORDS, _ALPHA = 'records', 'alpha'


def check_names(
    what: str, names: Sequence[str], own: Collection[str] = ()
) -> None:
  """Check that names can be those of folders, beside a job's own."""
  for name in names:
    is_plain = name.strip('. ') and not set('/\\|\n\r') & set(name)
    if not is_plain or name in own or names.count(name) > 1:
      raise ValueError(
          f'{what} has the name {name!r}, of {", ".join([*names, *own])}. Names'
          " are those of folders: give each another one, without '/' and '|'."
      )


class OutputFolder:
  """The output folder of a job."""

  def __init__(self, path: str | os.PathLike[str], job: str):
    """Make the folder; records of an earlier run are kept but not merged."""
    self._path = user_paths.expand(path)
    self._check_no_other(job)
    self._names: list[str] = []  # in the order in which they were added
    self._rows: dict[str, list[Iterable[str]]] = {}  # by their files
    whole_files.check_writable(self._path / _RECORDS)
    with whole_files.writing(self._path):
      for name in (_RESULTS, PREDICTIONS, OUTPUT, ERRORS):
        (self._path / name).unlink(missing_ok=True)

  def _check_no_other(self, job: str) -> None:
    records = whole_files.listed(self._path / _RECORDS, resumption.NAME_PREFIX)
    firsts = chunks.first_files(self._path)
    for path in (self._path / _RESULTS, *records, *firsts):
      found = json_files.first_object(path) if path.exists() else None
      other = (found or {}).get('job', job)
      if other != job:
        raise ValueError(
            f'{self._path} has results of another job, {other}. Give another'
            ' output folder.'
        )

  def find(
      self, settings: run_record.RunRecord, title: str
  ) -> run_record.RunRecord | None:
    """Return a configuration's record from an earlier run, or None.

    There is none either if the record is damaged, or if a checkpoint of its
    target or draft was replaced. A line on stderr, with the title, says whether
    the record is reused. A reused record must be added again to be merged.
    """
    title = f'configuration {len(self._names) + 1}: {title}'
    # Records of earlier versions may lack other keys.
    found = self._read(_RECORDS, settings, resumption.IDENTITY, title)
    return found and run_record.from_dict(found)

  def add(
      self,
      record: run_record.RunRecord,
      predictions: Iterable[str] | None = None,
  ) -> None:
    """Write a configuration's record, and its predictions; see `add_rows`."""
    name = f'{_RECORDS}/{resumption.name_of(record)}.json'
    whole_files.write(self._path, name, [run_record.to_json(record)])
    self._names.append(name)
    if predictions is not None:
      self.add_rows(PREDICTIONS, predictions)

  def add_rows(self, name: str, rows: Iterable[str]) -> None:
    """Have rows read, and written to a file, when the job is done."""
    self._rows.setdefault(name, []).append(rows)

  def read_alpha(
      self, settings: run_record.RunRecord, keys: Sequence[str], title: str
  ) -> dict[str, object] | None:
    """Return the values that `write_alpha` wrote for the settings, or None.

    A line on stderr says so, as for `find`. They must have all keys.
    """
    found = self._read(_ALPHA, settings, keys, title)
    return found and {key: found[key] for key in keys}

  def write_alpha(
      self, settings: run_record.RunRecord, values: dict[str, object]
  ) -> None:
    """Write alpha, which several configurations share, for resumption."""
    name = f'{_ALPHA}/{resumption.name_of(settings)}.json'
    line = json.dumps(values | resumption.origin_of(settings), allow_nan=False)
    whole_files.write(self._path, name, [line])

  def add_text(self, name: str, text: str) -> epath.Path:
    """Write a file beside the results."""
    return whole_files.write(self._path, name, [text.rstrip('\n')])

  def finish(self) -> epath.Path:
    """Merge the added rows and records; return the results' path."""
    for name, rows in self._rows.items():
      whole_files.write(self._path, name, itertools.chain.from_iterable(rows))
    # Not `splitlines`, which would also split at Unicode line separators.
    records = (
        (self._path / name).read_text(encoding='utf-8').removesuffix('\n')
        for name in self._names
    )
    return whole_files.write(self._path, _RESULTS, records)

  def _read(
      self,
      part: str,
      settings: run_record.RunRecord,
      keys: Sequence[str],
      title: str,
  ) -> dict[str, object] | None:
    """Return an earlier run's values if they have all keys, and say so."""
    path = self._path / part / f'{resumption.name_of(settings)}.json'
    found, said = None, 'compiling and measuring'
    if path.exists():
      found = json_files.first_object(path)
      if found is None or not {*keys, *resumption.ORIGIN} <= found.keys():
        found, said = None, f'measuring again, because {path} is damaged'
      else:
        said = f'taken from {path}; remove it to measure again'
    print(f'{title}: {said}', file=sys.stderr)
    return found
