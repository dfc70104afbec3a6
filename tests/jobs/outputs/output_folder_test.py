# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the output folder: complete files, and the merged ones last."""

import dataclasses
import json
import os
import time

import pytest

from speculative_t5x.jobs.outputs import configurations
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.reports import runs
from tests import full_disk

_MODELS = {
    'target': descriptions.ModelDescription,
    'drafter': descriptions.DrafterDescription,
}


def _record(temperature, **values):
  settings = {'topk': 0, 'topp': 0.0, 'gamma': 5, 'seed': 0, 'batch_size': 4}
  return provenance.new_record(
      'eval', temperature=temperature, **{**settings, **values}
  )


def _make(path, job='eval'):
  return output_folder.OutputFolder(path, job)


def _find(folder, settings):
  return folder.find(settings, 'gamma 5', total=3)


def _read_part(folder, settings, part='alpha'):
  return folder.read_part(part, settings, ['value', 'list'], 'alpha')


def _files(folder):
  """Returns the content of all files below a folder."""
  paths = [path for path in folder.rglob('*') if path.is_file()]
  return {path: path.read_text() for path in paths}


def _read(path):
  return [json.loads(line) for line in path.read_text()[:-1].split('\n')]


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


class TestOutputFolder:

  def test_merges_in_the_order_of_addition(self, tmp_path):
    folder = _make(tmp_path / 'a' / 'b')
    records = [_record(t) for t in (1.0, 0.0, 0.5)]
    for record in records:
      folder.add(record, [f'{record.temperature}', '"ä"'])
    path = folder.finish()
    assert str(path) == str(tmp_path / 'a' / 'b' / 'results.jsonl')
    assert runs.read(path) == records
    values = _read(path.parent / 'predictions.jsonl')
    assert values == [1.0, 'ä', 0.0, 'ä', 0.5, 'ä']

  def test_no_results_before_the_end(self, tmp_path):
    folder = _make(tmp_path)
    folder.add(_record(0.0), [])
    assert _names(tmp_path) == ['records']
    folder.finish()
    assert _names(tmp_path) == [
        'predictions.jsonl', 'records', 'results.jsonl'
    ]  # fmt: skip

  def test_line_separator_in_a_text(self, tmp_path):
    folder = _make(tmp_path)
    row = {'text': 'a\u2028b\x85c\nd'}
    folder.add(_record(0.0), 2 * [json.dumps(row, ensure_ascii=False)])
    folder.finish()
    assert _read(tmp_path / 'predictions.jsonl') == [row, row]

  def test_configurations_have_files_of_their_own(self, tmp_path):
    folder = _make(tmp_path)
    folder.add(_record(0.0), [])
    folder.add(_record(0.0, gamma=6), [])
    folder.add(_record(0.0), [])
    assert len(_names(tmp_path / 'records')) == 2

  def test_removes_merged_files_of_an_earlier_job(self, tmp_path):
    """Its records remain."""
    earlier = _make(tmp_path)
    earlier.add(_record(0.0), ['{}'])
    earlier.finish()
    _make(tmp_path)
    assert _names(tmp_path) == ['records']
    assert len(_names(tmp_path / 'records')) == 1

  def test_without_predictions(self, tmp_path):
    folder = _make(tmp_path)
    folder.add(_record(0.0))
    folder.finish()
    assert _names(tmp_path) == ['records', 'results.jsonl']

  def test_text_beside_the_results(self, tmp_path):
    folder = _make(tmp_path)
    path = folder.add_text('table.md', 'a\nä\n\n')
    assert str(path) == str(tmp_path / 'table.md')
    assert (tmp_path / 'table.md').read_text() == 'a\nä\n'

  def test_other_files_remain(self, tmp_path):
    for name in ('notes.txt', 'records/notes.txt', 'records/more/x'):
      path = tmp_path / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.write_text('mine')
    _make(tmp_path)
    assert _names(tmp_path) == ['notes.txt', 'records']
    assert _names(tmp_path / 'records') == ['more', 'notes.txt']
    folder = _make(tmp_path)
    folder.add(_record(0.0), [])
    assert len(_read(folder.finish())) == 1

  def test_non_finite_number_is_refused(self, tmp_path):
    folder = _make(tmp_path)
    with pytest.raises(ValueError):
      folder.add(_record(0.0, speedup=float('nan')), [])
    assert not _names(tmp_path / 'records')


class TestResume:

  def test_reuses_finished_configurations(self, tmp_path):
    record = _record(0.5, speedup=1.25, speedup_ci95=(1.0, 1.5))
    _make(tmp_path).add(record)
    folder = _make(tmp_path)
    found = _find(folder, _record(0.5))
    assert found == record
    # It is merged again when it is added again, in the order of addition.
    other = _record(0.0)
    folder.add(other)
    assert runs.read(folder.finish()) == [other]
    folder.add(found)
    assert runs.read(folder.finish()) == [other, record]

  def test_no_finished_configuration(self, tmp_path):
    folder = _make(tmp_path)
    assert _find(folder, _record(0.5)) is None
    folder.add(_record(0.0))
    assert len(_read(folder.finish())) == 1

  @pytest.mark.parametrize('key', configurations.SETTINGS)
  def test_another_setting_is_another_configuration(self, tmp_path, key):
    _make(tmp_path).add(_record(0.5))
    value = 0.25 if key == 'temperature' else 'another'
    changed = dataclasses.replace(_record(0.5), **{key: value})
    assert _find(_make(tmp_path), changed) is None

  @pytest.mark.parametrize(
      'text', ['', '{"schema_version": 1, "cre', '12', '[1]', '{}']
  )
  def test_damaged_record_is_not_reused(self, tmp_path, capsys, text):
    """A job may be killed while it writes."""
    _make(tmp_path).add(_record(0.5))
    (path,) = (tmp_path / 'records').iterdir()
    path.write_text(text)
    folder = _make(tmp_path)
    assert _find(folder, _record(0.5)) is None
    assert f'again, because {path} is damaged\n' in capsys.readouterr().err
    folder.add(_record(0.5))
    assert len(_read(folder.finish())) == 1

  @pytest.mark.parametrize('key', ['created', 'commit', 'job', 'c', 'greedy'])
  def test_record_without_a_key_is_not_reused(self, tmp_path, key):
    _make(tmp_path).add(_record(0.5))
    (path,) = (tmp_path / 'records').iterdir()
    values = dataclasses.asdict(_record(0.5))
    del values[key]
    path.write_text(json.dumps(values))
    assert _find(_make(tmp_path), _record(0.5)) is None

  def test_prints_what_is_measured(self, tmp_path, capsys):
    _make(tmp_path).add(_record(1.0))
    (path,) = (tmp_path / 'records').iterdir()
    folder = _make(tmp_path)
    for temperature in (0.5, 1.0):
      _find(folder, _record(temperature))
      folder.add(_record(temperature))
    assert capsys.readouterr().err.splitlines() == [
        'configuration 1 of 3: gamma 5: compiling and measuring',
        f'configuration 2 of 3: gamma 5: taken from {path}',
    ]

  @pytest.mark.parametrize(
      'code', [{'commit': 'abc'}, {'package_version': '0'}]
  )
  def test_message_about_another_version(self, tmp_path, capsys, code):
    """It is printed for records and parts."""
    now = dataclasses.replace(_record(0.5), package_version='1', commit='def')
    before = dataclasses.replace(now, **code)
    folder = _make(tmp_path)
    folder.add(before)
    folder.write_part('alpha', before, {'value': 0.5, 'list': []})
    assert _find(folder, now) == before
    assert _read_part(folder, now) == {'value': 0.5, 'list': []}
    told = (
        f', measured by version {before.package_version}, commit'
        f' {before.commit}; remove it to measure again'
    )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all(line.endswith(told) for line in lines)


class TestCheckpoint:
  """A checkpoint that was trained again has the same name."""

  @pytest.mark.parametrize('role', ['target', 'drafter'])
  @pytest.mark.parametrize('written', ['checkpoint_1', 'checkpoint_1/state'])
  def test_checkpoint_newer_than_the_record(
      self, tmp_path, capsys, role, written
  ):
    path = tmp_path / 'pair' / 'checkpoint_1'
    (path / 'state').mkdir(parents=True)
    model = _MODELS[role](checkpoint=str(path))
    settings = _record(0.5, **{role: model})
    folder = _make(tmp_path / 'output')
    folder.add(settings)
    folder.write_part('alpha', settings, {'value': 0.5, 'list': []})
    assert _find(folder, settings) is not None
    assert _read_part(folder, settings) is not None
    later = time.time() + 60
    os.utime(tmp_path / 'pair' / written, (later, later))
    capsys.readouterr()
    assert _find(folder, settings) is None
    assert _read_part(folder, settings) is None
    err = capsys.readouterr().err
    assert err.count('measuring again, because a checkpoint is newer\n') == 2

  @pytest.mark.parametrize('path', [None, '/nowhere', 'gs://bucket/model'])
  def test_checkpoint_on_another_machine(self, tmp_path, path):
    settings = _record(0.5, target=_MODELS['target'](checkpoint=path))
    folder = _make(tmp_path)
    folder.add(settings)
    assert _find(folder, settings) == settings


class TestAnotherJob:

  @pytest.mark.parametrize('is_done', [True, False])
  def test_folder_is_unchanged(self, tmp_path, is_done):
    walltime = _make(tmp_path, 'walltime')
    walltime.add(dataclasses.replace(_record(0.5), job='walltime'))
    if is_done:
      walltime.finish()
    before = _files(tmp_path)
    with pytest.raises(ValueError) as error:
      _make(tmp_path)
    assert str(error.value) == (
        f'{tmp_path} has results of another job, walltime. Give another'
        ' output folder.'
    )
    assert _files(tmp_path) == before
    _make(tmp_path, 'walltime')

  def test_only_results(self, tmp_path):
    line = run_record.to_json(_record(0.5))
    (tmp_path / 'results.jsonl').write_text(f'{line}\n{line}\n')
    with pytest.raises(ValueError, match='another job, eval'):
      _make(tmp_path, 'walltime')

  def test_one_record_among_others(self, tmp_path):
    folder = _make(tmp_path)
    for temperature in (0.0, 0.5, 1.0):
      folder.add(_record(temperature))
    odd = sorted((tmp_path / 'records').iterdir())[1]
    odd.write_text(odd.read_text().replace('"eval"', '"walltime"'))
    with pytest.raises(ValueError, match='another job, walltime'):
      _make(tmp_path)

  @pytest.mark.parametrize('text', ['', 'mine', '12', '{}'])
  def test_records_without_a_job(self, tmp_path, text):
    (tmp_path / 'results.jsonl').write_text(text)
    _make(tmp_path)


class TestParts:

  def test_parts_are_reused(self, tmp_path):
    values = {'value': 0.5, 'list': [1.0, 2.0]}
    folder = _make(tmp_path)
    folder.write_part('alpha', _record(0.5), values)
    later = _make(tmp_path)
    assert _read_part(later, _record(0.5)) == values
    assert _read_part(later, _record(0.5, seed=1)) is None
    assert _read_part(later, _record(0.5), 'beta') is None
    # Parts are no results.
    record = _record(0.5)
    later.add(record)
    assert runs.read(later.finish()) == [record]

  @pytest.mark.parametrize(
      'text',
      ['{"val', '', '12', '[1]', '{}', '{"value": 1, "list": [], "commit": 1}'],
  )
  def test_damaged_part(self, tmp_path, capsys, text):
    folder = _make(tmp_path)
    folder.write_part('alpha', _record(0.5), {'value': 0.5, 'list': []})
    assert _read_part(folder, _record(0.5)) is not None
    (path,) = (tmp_path / 'alpha').iterdir()
    path.write_text(text)
    capsys.readouterr()
    assert _read_part(folder, _record(0.5)) is None
    assert capsys.readouterr().err == (
        f'alpha: measuring again, because {path} is damaged\n'
    )

  def test_part_without_a_value(self, tmp_path):
    folder = _make(tmp_path)
    folder.write_part('alpha', _record(0.5), {'value': 0.5})
    assert _read_part(folder, _record(0.5)) is None


class TestUnwritable:

  @pytest.mark.parametrize('name', ['file', 'file/below'])
  def test_file_in_place_of_the_folder(self, tmp_path, name):
    (tmp_path / 'file').write_text('mine')
    with pytest.raises(OSError, match='file.* cannot be written to .*Give'):
      _make(tmp_path / name)
    assert (tmp_path / 'file').read_text() == 'mine'

  def test_full_disk_leaves_no_truncated_file(self, tmp_path):
    folder = _make(tmp_path)
    folder.add(_record(0.0), ['x' * 5000])
    with full_disk.full_disk(3000) as reason:
      with pytest.raises(OSError, match=rf'\({reason}\)'):
        folder.finish()
    assert _names(tmp_path) == ['records']
    folder.finish()
    assert _names(tmp_path) == [
        'predictions.jsonl', 'records', 'results.jsonl'
    ]  # fmt: skip
