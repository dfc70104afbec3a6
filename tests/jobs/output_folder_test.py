# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whole files, the merged ones last."""

import json

from etils import epath
import pytest

from speculative_t5x import run_record
from speculative_t5x.jobs import output_folder


def _record(temperature, **values):
  settings = {'topk': 0, 'topp': 0.0, 'gamma': 5, 'seed': 0, 'batch_size': 4}
  return run_record.make(
      'eval', temperature=temperature, **{**settings, **values}
  )


def _read(path):
  return [json.loads(line) for line in path.read_text()[:-1].split('\n')]


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


class TestOutputFolder:

  def test_merges_in_the_order_of_adding(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path / 'a' / 'b')
    records = [_record(t) for t in (1.0, 0.0, 0.5)]
    for record in records:
      folder.add(record, [{'x': record['temperature']}, {'x': 'ä'}])
    path = folder.finish()
    assert str(path) == str(tmp_path / 'a' / 'b' / 'results.jsonl')
    assert _read(path) == records
    values = [row['x'] for row in _read(path.parent / 'predictions.jsonl')]
    assert values == [1.0, 'ä', 0.0, 'ä', 0.5, 'ä']

  def test_no_results_before_the_end(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    folder.add(_record(0.0), [])
    assert _names(tmp_path) == ['predictions', 'records']
    folder.finish()
    assert _names(tmp_path) == [
        'predictions', 'predictions.jsonl', 'records', 'results.jsonl'
    ]  # fmt: skip

  def test_a_line_separator_in_a_text_breaks_no_line(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    row = {'text': 'a\u2028b\x85c\nd'}
    folder.add(_record(0.0), [row, row])
    folder.finish()
    assert _read(tmp_path / 'predictions.jsonl') == [row, row]

  def test_configurations_have_files_of_their_own(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    folder.add(_record(0.0), [])
    folder.add(_record(0.0, gamma=6), [])
    folder.add(_record(0.0), [])
    assert len(_names(tmp_path / 'records')) == 2

  def test_takes_away_what_an_earlier_job_merged(self, tmp_path):
    """Not what it finished, unless told so."""
    earlier = output_folder.OutputFolder(tmp_path)
    earlier.add(_record(0.0), [{}])
    earlier.finish()
    folder = output_folder.OutputFolder(tmp_path)
    assert _names(tmp_path) == ['predictions', 'records']
    assert len(_names(tmp_path / 'predictions')) == 1
    assert len(_names(tmp_path / 'records')) == 1
    folder.clear()
    assert not _names(tmp_path / 'predictions')
    assert not _names(tmp_path / 'records')

  def test_without_predictions(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    folder.clear()
    folder.add(_record(0.0))
    folder.finish()
    assert _names(tmp_path) == ['records', 'results.jsonl']

  def test_text_beside_the_results(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    path = folder.add_text('table.md', 'a\nä\n\n')
    assert str(path) == str(tmp_path / 'table.md')
    assert (tmp_path / 'table.md').read_text() == 'a\nä\n'

  def test_leaves_other_files_alone(self, tmp_path):
    for name in ('notes.txt', 'records/notes.txt', 'records/more/x'):
      path = tmp_path / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text('mine')
    output_folder.OutputFolder(tmp_path).clear()
    assert _names(tmp_path) == ['notes.txt', 'records']
    assert _names(tmp_path / 'records') == ['more', 'notes.txt']
    folder = output_folder.OutputFolder(tmp_path)
    folder.add(_record(0.0), [])
    assert len(_read(folder.finish())) == 1

  def test_a_number_that_is_not_finite_is_refused(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    with pytest.raises(ValueError):
      folder.add(_record(0.0, speedup=float('nan')), [])
    assert not _names(tmp_path / 'records')


class TestResume:

  def test_takes_what_was_finished(self, tmp_path):
    record = _record(0.5, speedup=1.25, speedup_ci95=[1.0, 1.5])
    output_folder.OutputFolder(tmp_path).add(record)
    folder = output_folder.OutputFolder(tmp_path)
    found = folder.find(_record(0.5))
    assert found == record
    # It is merged again when it is added again, in its turn.
    other = _record(0.0)
    folder.add(other)
    assert _read(folder.finish()) == [other]
    folder.add(found)
    assert _read(folder.finish()) == [other, record]

  def test_nothing_was_finished(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    assert folder.find(_record(0.5)) is None
    folder.add(_record(0.0))
    assert len(_read(folder.finish())) == 1

  @pytest.mark.parametrize('key', output_folder.SETTINGS)
  def test_another_setting_is_another_configuration(self, tmp_path, key):
    output_folder.OutputFolder(tmp_path).add(_record(0.5))
    value = 0.25 if key == 'temperature' else 'another'
    changed = _record(0.5) | {key: value}
    assert output_folder.OutputFolder(tmp_path).find(changed) is None

  @pytest.mark.parametrize('text', ['', '{"schema_version": 1, "cre'])
  def test_a_file_that_was_cut_short_is_not_finished(self, tmp_path, text):
    """A job may be killed while it writes."""
    output_folder.OutputFolder(tmp_path).add(_record(0.5))
    (path,) = (tmp_path / 'records').iterdir()
    path.write_text(text)
    folder = output_folder.OutputFolder(tmp_path)
    assert folder.find(_record(0.5)) is None
    folder.add(_record(0.5))
    assert len(_read(folder.finish())) == 1


class TestParts:

  def test_are_kept(self, tmp_path):
    values = {'value': 0.5, 'list': [1.0, 2.0]}
    folder = output_folder.OutputFolder(tmp_path)
    folder.write_part('alpha', _record(0.5), values)
    later = output_folder.OutputFolder(tmp_path)
    assert later.read_part('alpha', _record(0.5)) == values
    assert later.read_part('alpha', _record(0.5, seed=1)) is None
    assert later.read_part('beta', _record(0.5)) is None
    # They are no results.
    record = _record(0.5)
    later.add(record)
    assert _read(later.finish()) == [record]

  def test_one_that_was_cut_short(self, tmp_path):
    folder = output_folder.OutputFolder(tmp_path)
    folder.write_part('alpha', _record(0.5), {'value': 0.5})
    (path,) = (tmp_path / 'alpha').iterdir()
    path.write_text('{"val')
    assert folder.read_part('alpha', _record(0.5)) is None


class TestUnwritable:

  @pytest.mark.parametrize('name', ['file', 'file/below'])
  def test_file_in_the_way(self, tmp_path, name):
    (tmp_path / 'file').write_text('mine')
    with pytest.raises(OSError, match='file.* cannot be written to .*Give'):
      output_folder.OutputFolder(tmp_path / name)
    assert (tmp_path / 'file').read_text() == 'mine'

  def test_full_disk_leaves_no_file_cut_short(self, tmp_path, monkeypatch):
    folder = output_folder.OutputFolder(tmp_path)
    folder.add(_record(0.0), [{}])
    path_type = type(epath.Path(tmp_path))
    write = path_type.write_text

    def write_half(path, text, *args, **options):
      write(path, text[: len(text) // 2], *args, **options)
      if path.name == 'results.jsonl':
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(path_type, 'write_text', write_half)
    with pytest.raises(OSError, match=r'\(No space left on device\)'):
      folder.finish()
    assert not (tmp_path / 'results.jsonl').exists()
