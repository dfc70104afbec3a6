# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that work is reused if, and only if, it is whole and the same."""

import dataclasses
import functools
import json

from etils import epath
import pytest

from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.jobs.outputs import training_settings
from speculative_t5x.loading import descriptions
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import provenance
from tests import memory_files

_ROWS = ['{"text": "a\u2028ä"}', '{"text": "b"}']


@pytest.fixture(params=['local', 'memory'])
def folder(request, tmp_path):
  """Return an output folder, local or remote."""
  if request.param == 'local':
    yield epath.Path(tmp_path) / '[1]'  # is no pattern
  else:
    with memory_files.enabled():
      yield epath.Path('memory://bucket/output')


_new_record = functools.cache(provenance.new_record)  # asks git for the commit


def _record(**values):
  record = _new_record('infer', temperature=0.0)
  return dataclasses.replace(record, **values)


def _chunks(folder, options=None, **values):
  return chunks_lib.Chunks(folder, _record(**values), options or {}, 'a job')


def _take(chunks, number=0, inputs=('a', 'b'), values=None):
  """Find or write a chunk; return it, and whether it was written."""
  digest = chunks_lib.digest_of(inputs)
  chunk = chunks.find(number, digest)
  if chunk is not None:
    return chunk, False
  content = chunks_lib.Content(_ROWS, values or {'count': number})
  return chunks.put(number, digest, content), True


def _take_all(chunks, count):
  """Take so many chunks of equal rows."""
  parts = ((['a', i], [i]) for i in range(count))
  decode = lambda items: (chunks_lib.Content(_ROWS, {}) for _ in items)
  return list(chunks.take_all(parts, decode))


class TestFind:

  def test_finished_chunk_is_reused(self, folder, capsys):
    values = {'seconds': (0.1, 1 / 3)}
    made, is_decoded = _take(_chunks(folder), values=values)
    assert is_decoded
    assert made.values == {'seconds': [0.1, 1 / 3]}
    found, is_decoded = _take(_chunks(folder))
    assert found == made and not is_decoded
    assert 'a job: finished chunks are taken from' in capsys.readouterr().err

  def test_rows_are_in_order(self, folder):
    chunks = _chunks(folder)
    _take_all(chunks, 12)
    assert list(chunks) == 12 * _ROWS
    assert list(chunks) == 12 * _ROWS  # also a second time
    fewer = _chunks(folder)
    _take_all(fewer, 1)
    assert list(fewer) == _ROWS

  def test_other_inputs_are_decoded(self, folder, capsys):
    _take(_chunks(folder))
    assert _take(_chunks(folder), inputs=['a', 'c'])[1]
    assert 'has other inputs' in capsys.readouterr().err

  def test_other_settings_and_formats_are_decoded(self, folder, monkeypatch):
    _take(_chunks(folder, {'chunk_batches': 1}))
    assert _take(_chunks(folder, {'chunk_batches': 2}))[1]
    monkeypatch.setattr(chunks_lib, '_FORMAT', {'chunk_format': 1})
    assert _take(_chunks(folder, {'chunk_batches': 1}))[1]


class TestTakeAll:

  @pytest.mark.parametrize('ahead', [1, 2, 9])
  def test_missing_chunks_are_one_stream(self, folder, ahead):
    parts = [([number], [f'{number}a', f'{number}b']) for number in range(5)]
    for number in (0, 2, 3):
      _take(_chunks(folder), number, [number])
    decoded = []

    def decode(numbered):
      """Yield contents of two inputs each, which are read ahead."""
      waiting = []
      for number, each in numbered:
        waiting.append(each)
        assert each == f'{number // 2}{"ab"[number % 2]}'
        if len(waiting) == 2 * ahead:
          yield content(waiting)
      while waiting:
        yield content(waiting)

    def content(waiting):
      rows = [json.dumps(waiting.pop(0)) for _ in range(2)]
      decoded.extend(rows)
      return chunks_lib.Content(rows, {'count': len(decoded)})

    chunks = _chunks(folder)
    taken = list(chunks.take_all(parts, decode))
    new = ['"1a"', '"1b"'], ['"4a"', '"4b"']
    assert decoded == [*new[0], *new[1]]
    assert list(chunks) == [*_ROWS, *new[0], *_ROWS, *_ROWS, *new[1]]
    counts = [each.values['count'] for each in taken]
    assert counts == [0, 2, 2, 3, 4]
    assert list(chunks.take_all(parts, decode)) == taken  # nothing is missing
    assert len(decoded) == 4


def _path(tmp_path):
  (path,) = tmp_path.glob('chunks/*/000000.jsonl')
  return path


class TestDamage:

  def test_file_truncated_anywhere(self, tmp_path, capsys):
    made, _ = _take(_chunks(tmp_path))
    path = _path(tmp_path)
    complete = path.read_bytes()
    for size in (0, 1, 99, len(complete) - 66, *range(-65, 0)):
      path.write_bytes(complete[:size])
      found, is_decoded = _take(_chunks(tmp_path))
      assert is_decoded and found == made
      assert path.read_bytes() == complete
    path.write_bytes(complete[:100] + bytes(50) + complete[150:])
    assert _take(_chunks(tmp_path))[1]
    assert f'again, because {path} is damaged' in capsys.readouterr().err


# Settings of a record by which configurations are not told apart.
_NO_IDENTITY = {
    'schema_version', 'created', 'package_version', 'commit',
    'truncated_inputs', 'unknown_inputs', 'lossless',
    # By these too, where they are set.
    'draft_sampling', 'inputs_digest',
    'beams', 'brevity_penalty', 'length_penalty', 'draft_beams',
}  # fmt: skip


class TestOtherConfigurations:

  def test_all_settings_are_compared(self):
    keys = run_record.KEYS[: run_record.KEYS.index('baseline')]
    expected = {*keys, 'repeats', 'rounds'} - _NO_IDENTITY
    assert set(resumption.IDENTITY) == expected

  def test_are_refused_where_asked(self, folder):
    _take(_chunks(folder, seed=1))
    assert not _take(_chunks(folder, seed=1))[1]
    _chunks(folder, seed=1).check_alone()
    with pytest.raises(ValueError, match=r'another seed \(1\), topk'):
      _chunks(folder, seed=2, topk=3).check_alone()
    _chunks(folder, seed=2, topk=3).check_alone(['seed', 'topk'])

  def test_sampling_of_the_draft(self, folder):
    """It is named only where it differs, as earlier versions did."""
    _take(_chunks(folder, draft_sampling={'topk': 3}))
    assert _take(_chunks(folder))[1]
    with pytest.raises(ValueError, match='results with another draft_sampling'):
      _chunks(folder).check_alone()

  def test_inputs_of_another_file(self, folder):
    """The same ones are not decoded again, and others not written over."""
    def of(path):
      return chunks_lib.Chunks(folder, _record(), {}, 'a job', {'task': path})

    _take(of('one'))
    assert not _take(of('two'))[1]
    with pytest.raises(ValueError, match='results of one, which has other'):
      _take(of('two'), inputs=['c'])
    assert _take(of('one'), inputs=['c'])[1]

  def test_what_a_model_holds(self, folder, tmp_path):
    """Replaced at its path, it is another configuration beside the first."""
    def of(name):
      model = descriptions.ModelDescription(checkpoint=str(tmp_path / name))
      return _chunks(folder, target=model)

    for name in ('model', 'other'):
      (tmp_path / name).mkdir()
      (tmp_path / name / 'weights').write_text('1')
    _take(of('model'))
    of('other').check_alone()
    assert not _take(of('other'))[1]
    (tmp_path / 'model/weights').write_text('2')
    of('model').check_alone()
    (tmp_path / 'other/weights').write_text('3')
    with pytest.raises(ValueError, match='results with another target'):
      of('other').check_alone()
    assert _take(of('model'))[1]

  def test_of_an_earlier_version(self, folder, monkeypatch):
    with monkeypatch.context() as patch:
      patch.setattr(chunks_lib, '_FORMAT', {'chunk_format': 3})
      _take(_chunks(folder))
    with pytest.raises(ValueError, match='chunk_format'):
      _chunks(folder).check_alone()

  def test_of_the_same_job_are_not_refused(self, folder):
    one, other = (_chunks(folder, topk=topk) for topk in (3, 5))
    _take(other)
    one.check_alone(beside=[other])
    with pytest.raises(ValueError, match='results with another topk'):
      one.check_alone(beside=[_chunks(folder, topk=7)])

  def test_another_job_is_refused(self, folder):
    _take(_chunks(folder))
    with pytest.raises(ValueError, match='results of another job, infer'):
      output_folder.OutputFolder(folder, 'eval')


def test_a_chunk_is_one_json_object_per_line_and_a_checksum(tmp_path):
  _take(_chunks(tmp_path))
  header, *rows, checksum = _path(tmp_path).read_text()[:-1].split('\n')
  assert json.loads(header)['job'] == 'infer'
  assert rows == _ROWS and len(checksum) == 64


_FREE = ('STEPS',)
_SETTINGS = {'RATE': '0.1', 'STEPS': '10'}


def _keep(folder, **changes):
  training_settings.keep_settings(folder, _SETTINGS | changes, _FREE)


def _kept(folder):
  return json.loads((folder / 'settings.json').read_text())


class TestSettings:

  def test_same_and_free_settings_resume(self, tmp_path):
    """They are kept before the job runs, and without a checkpoint any begin."""
    folder = tmp_path / 'a' / 'b'
    _keep(folder, RATE='0.3')
    assert _kept(folder)['RATE'] == '0.3'
    _keep(folder)
    (folder / 'checkpoint_5').mkdir()
    _keep(folder, STEPS='20')
    assert _kept(folder) == {'RATE': '0.1', 'STEPS': '20'}
    (folder / 'settings.json').write_text('{')
    with pytest.raises(ValueError, match='RATE was unset.*remove'):
      _keep(folder)

  def test_another_job_at_work(self, tmp_path):
    with folder_lock.hold(tmp_path):
      with pytest.raises(folder_lock.FolderInUseError):
        _keep(tmp_path)
    assert not (tmp_path / 'settings.json').exists()
