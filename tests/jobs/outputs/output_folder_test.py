# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the output folder: complete files, and the merged ones last."""

import dataclasses
import json
import os
import shutil

from etils import epath
import pytest

from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import descriptions
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.reports import runs
from tests import memory_files
from tests import workloads

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
  return folder.find(settings, 'gamma 5')


def _read_alpha(folder, settings):
  return folder.read_alpha(settings, ['value', 'list'], 'alpha')


def _files(folder):
  """Return the content of all files below a folder."""
  paths = [path for path in folder.rglob('*') if path.is_file()]
  return {path: path.read_text() for path in paths}


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


class TestOutputFolder:

  def test_merges_in_the_order_of_addition(self, tmp_path):
    folder = _make(tmp_path / 'a' / 'b')
    records = [_record(t) for t in (1.0, 0.0, 0.5)]
    row = {'text': 'a\u2028b\x85c\nd'}
    for record in records:
      line = json.dumps(row, ensure_ascii=False)
      folder.add(record, [f'{record.temperature}', line])
    assert _names(tmp_path / 'a' / 'b') == ['records']
    path = folder.finish()
    assert str(path) == str(tmp_path / 'a' / 'b' / 'results.jsonl')
    assert runs.read(path) == records
    values = workloads.read(path.parent / 'predictions.jsonl')
    assert values == [1.0, row, 0.0, row, 0.5, row]

  def test_files_of_an_earlier_job(self, tmp_path):
    """Its merged files go; its records and other files remain."""
    earlier = _make(tmp_path)
    earlier.add(_record(0.0), ['{}'])
    path = earlier.add_text('table.md', 'a\n\xe4\n\n')
    earlier.finish()
    (tmp_path / 'records' / 'notes.txt').write_text('mine')
    _make(tmp_path)
    assert _names(tmp_path) == ['records', 'table.md']
    assert path.read_text() == 'a\n\xe4\n'
    assert len(_names(tmp_path / 'records')) == 2


class TestResume:

  def test_reuses_finished_configurations(self, tmp_path, capsys):
    record = _record(0.5, speedup=1.25, speedup_ci95=(1.0, 1.5))
    _make(tmp_path).add(record)
    (path,) = (tmp_path / 'records').iterdir()
    folder = _make(tmp_path)
    other = _record(0.0)
    assert _find(folder, other) is None
    folder.add(other)
    found = _find(folder, _record(0.5))
    assert found == record
    assert capsys.readouterr().err.splitlines() == [
        'configuration 1: gamma 5: compiling and measuring',
        f'configuration 2: gamma 5: taken from {path}; remove it to measure'
        ' again',
    ]
    # It is merged again when it is added again, in the order of addition.
    assert runs.read(folder.finish()) == [other]
    folder.add(found)
    assert runs.read(folder.finish()) == [other, record]

  def test_another_setting_is_another_configuration(self, tmp_path):
    _make(tmp_path).add(_record(0.5))
    for key in resumption.IDENTITY:
      value = 0.25 if key == 'temperature' else 'another'
      value = _MODELS[key](name='another') if key in _MODELS else value
      changed = dataclasses.replace(_record(0.5), **{key: value})
      assert _find(_make(tmp_path), changed) is None, key

  def test_damaged_values_are_not_reused(self, tmp_path, capsys):
    """A job may be killed while it writes."""
    folder = _make(tmp_path)
    folder.add(_record(0.5))
    folder.write_alpha(_record(0.5), {'value': 0.5, 'list': []})
    values = dataclasses.asdict(_record(0.5))
    del values['created']
    texts = ['', '{"schema_version": 1, "cre', '12', '{}', json.dumps(values)]
    for text in texts:
      for part in ('records', 'alpha'):
        (path,) = (tmp_path / part).iterdir()
        path.write_text(text)
        capsys.readouterr()
        find = _find if part == 'records' else _read_alpha
        assert find(folder, _record(0.5)) is None, text
        said = capsys.readouterr().err
        assert f'again, because {path} is damaged\n' in said
    folder = _make(tmp_path)
    folder.add(_record(0.5))
    assert len(workloads.read(folder.finish())) == 1

  @pytest.mark.parametrize('role', ['target', 'drafter'])
  def test_replaced_checkpoint(self, tmp_path, role):
    """What is trained again has the same name; moving keeps all times."""
    for name, text in (('pair', 'one'), ('other', 'two')):
      (tmp_path / name / 'state').mkdir(parents=True)
      (tmp_path / name / 'state' / 'weights').write_text(text)
    model = _MODELS[role](checkpoint=str(tmp_path / 'pair'))
    settings = _record(0.5, **{role: model})
    folder = _make(tmp_path / 'output')

    def is_found():
      found = _find(folder, settings), _read_alpha(folder, settings)
      folder.add(settings)
      folder.write_alpha(settings, {'value': 0.5, 'list': []})
      return [each is not None for each in found]

    assert is_found() == [False, False] and is_found() == [True, True]
    shutil.copytree(tmp_path / 'pair', tmp_path / 'copy')
    copy = _MODELS[role](checkpoint=str(tmp_path / 'copy'))
    copied = _record(0.5, **{role: copy})
    assert _find(folder, copied) == settings
    weights = tmp_path / 'pair' / 'state' / 'weights'
    time_ns = weights.stat().st_mtime_ns
    weights.write_text('six')
    os.utime(weights, ns=(time_ns, time_ns))
    assert is_found() == [False, False] and is_found() == [True, True]
    (tmp_path / 'pair').rename(tmp_path / 'old')
    (tmp_path / 'other').rename(tmp_path / 'pair')
    assert is_found() == [False, False]

  def test_replaced_in_a_bucket(self, tmp_path):
    """Whatever its layout, and a table; not all of its files are asked for."""
    folder = _make(tmp_path)
    model = _MODELS['target'](checkpoint='memory://bucket/model')
    settings = _record(0.5, target=model)
    with memory_files.enabled():
      for name in (
          'state/_METADATA', 'checkpoint', 'config.json', 'model.safetensors',
          'generation_config.json', 'pytorch_model.bin.index.json',
          'token_counts.npz',
      ):  # fmt: skip
        for text in ('one', 'another'):
          (epath.Path(model.checkpoint) / name).write_text(text)
          assert _find(folder, settings) is None, name
          folder.add(settings)
          assert _find(folder, settings) == settings

  def test_record_of_an_earlier_version(self, tmp_path):
    """It lacks keys that came later."""
    folder = _make(tmp_path)
    record = _record(0.5)
    folder.add(record)
    (path,) = (tmp_path / 'records').iterdir()
    values = json.loads(path.read_text())
    del values['draft_sampling']
    path.write_text(json.dumps(values))
    assert _find(folder, record) == record


class TestAnotherJob:

  @pytest.mark.parametrize('is_done', [True, False])
  def test_folder_is_unchanged(self, tmp_path, is_done):
    """Also where only one record is of another job."""
    folder = _make(tmp_path)
    for temperature in (0.0, 0.5, 1.0):
      folder.add(_record(temperature))
    odd = sorted((tmp_path / 'records').iterdir())[1]
    odd.write_text(odd.read_text().replace('"eval"', '"walltime"'))
    if is_done:
      folder.finish()
    before = _files(tmp_path)
    with pytest.raises(ValueError, match='results of another job, walltime'):
      _make(tmp_path)
    assert _files(tmp_path) == before

  @pytest.mark.parametrize('text', ['', '{}'])
  def test_records_without_a_job(self, tmp_path, text):
    (tmp_path / 'results.jsonl').write_text(text)
    _make(tmp_path)
