# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the settings and data that are kept beside checkpoints."""

import json

from etils import epath
import numpy as np
import pytest

from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading.files import folder_lock

_FREE = ('STEPS',)
_SETTINGS = {'RATE': '0.1', 'STEPS': '10'}
_TEXTS, _OTHERS = np.arange(12).reshape(3, 4), np.ones((2, 2))


def _keep(folder, **changes):
  return resumption.keep_settings(folder, _SETTINGS | changes, _FREE)


def _run(folder, makes_checkpoint=True, **changes):
  with _keep(folder, **changes):
    if makes_checkpoint:
      (folder / 'checkpoint_5').mkdir(exist_ok=True)


def _kept(folder):
  return json.loads((folder / 'settings.json').read_text())


class TestSettings:

  def test_same_and_free_settings_resume(self, tmp_path):
    """They are kept before the job runs, and without a checkpoint any begin."""
    folder = tmp_path / 'a' / 'b'
    with _keep(folder, RATE='0.3'):
      assert _kept(folder)['RATE'] == '0.3'
    _run(folder)
    _run(folder)
    _run(folder, STEPS='20')
    assert _kept(folder) == {'RATE': '0.1', 'STEPS': '20'}
    with pytest.raises(KeyError), _keep(folder):  # it has a checkpoint
      raise KeyError
    assert _kept(folder)['RATE'] == '0.1'
    (folder / 'settings.json').write_text('{')
    with pytest.raises(ValueError, match='settings.json is damaged: remove'):
      _run(folder)

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          ({'RATE': '0.3'}, 'RATE was 0.1 and is now 0.3'),
          ({'SEED': '1'}, 'SEED was unset and is now 1'),
          (
              {'RATE': '0.3', 'A': '1', 'B': '2', 'C': '3'},
              'A was unset and is now 1; B .*; C [^;]*; and others',
          ),
      ],
  )
  def test_other_settings_are_refused(self, tmp_path, changes, message):
    _run(tmp_path)
    with pytest.raises(ValueError, match=message):
      _run(tmp_path, **changes)
    assert _kept(tmp_path) == _SETTINGS
    (tmp_path / 'settings.json').unlink()
    _run(tmp_path, **changes)
    with pytest.raises(ValueError, match=' is now '):  # one that is missing
      _run(tmp_path)

  @pytest.mark.parametrize('error', [KeyError, KeyboardInterrupt])
  def test_job_that_fails_at_once_leaves_nothing(self, tmp_path, error):
    with pytest.raises(error), _keep(tmp_path / 'model'):
      raise error
    assert not (tmp_path / 'model').exists()
    (tmp_path / 'mine').write_text('')
    with pytest.raises(error), _keep(tmp_path):
      raise error
    assert [path.name for path in tmp_path.iterdir()] == ['mine']

  def test_another_job_at_work(self, tmp_path):
    """It may have taken the folder before or after the check."""
    with folder_lock.hold(tmp_path):
      with pytest.raises(folder_lock.FolderInUseError):
        _run(tmp_path)
    assert not (tmp_path / 'settings.json').exists()
    with pytest.raises(folder_lock.FolderInUseError), _keep(tmp_path):
      raise folder_lock.FolderInUseError
    assert _kept(tmp_path) == _SETTINGS


class TestData:

  def _check(self, folder, texts=_TEXTS, others=_OTHERS):
    data = {'texts': [texts, texts.ravel()[:4]], 'others': [others]}
    resumption.keep_data(epath.Path(folder), data)

  @pytest.mark.parametrize(
      'texts',
      [_TEXTS + 1, _TEXTS.reshape(4, 3), _TEXTS[:2], _TEXTS.astype(np.int16)],
      ids=['values', 'shape', 'number', 'type'],
  )
  def test_other_data_is_refused(self, tmp_path, texts):
    self._check(tmp_path, texts)  # without a checkpoint any data begins
    self._check(tmp_path)
    (tmp_path / 'checkpoint_5').mkdir()
    self._check(tmp_path, np.array(_TEXTS, order='F'))  # the same
    with pytest.raises(ValueError, match='training with other data: texts. '):
      self._check(tmp_path, texts)
    with pytest.raises(ValueError, match='other data: others; texts. '):
      self._check(tmp_path, texts, _OTHERS + 1)
    self._check(tmp_path)  # what was kept stays
    (tmp_path / 'data.json').unlink()
    self._check(tmp_path, texts)  # a training that kept no digests resumes
