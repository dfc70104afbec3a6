# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the settings that are kept beside checkpoints."""

import json

import pytest

from speculative_t5x.jobs.outputs import kept_settings
from speculative_t5x.loading.files import folder_lock

_FREE = ('STEPS',)
_SETTINGS = {'RATE': '0.1', 'STEPS': '10'}


def _run(folder, makes_checkpoint=True, **changes):
  with kept_settings.keep(folder, _SETTINGS | changes, _FREE):
    if makes_checkpoint:
      (folder / 'checkpoint_5').mkdir(exist_ok=True)


def _kept(folder):
  return json.loads((folder / 'settings.json').read_text())


def test_are_kept_before_the_job_runs(tmp_path):
  folder = tmp_path / 'a' / 'b'
  with kept_settings.keep(folder, _SETTINGS, _FREE):
    assert _kept(folder) == _SETTINGS


def test_same_and_free_settings_resume(tmp_path):
  _run(tmp_path)
  _run(tmp_path)
  _run(tmp_path, STEPS='20')
  assert _kept(tmp_path)['STEPS'] == '20'


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'RATE': '0.3'}, 'RATE was 0.1 and is now 0.3'),
        ({'SEED': '1'}, 'SEED was no value and is now 1'),
        (
            {'RATE': '0.3', 'A': '1', 'B': '2', 'C': '3'},
            'A was no value and is now 1; B .*; C [^;]*; and others',
        ),
    ],
)
def test_other_settings_are_refused(tmp_path, changes, message):
  _run(tmp_path)
  with pytest.raises(ValueError, match=message) as caught:
    _run(tmp_path, **changes)
  assert _kept(tmp_path) == _SETTINGS
  assert f'remove {tmp_path}/settings.json to resume' in str(caught.value)
  (tmp_path / 'settings.json').unlink()
  _run(tmp_path, **changes)
  assert _kept(tmp_path) == _SETTINGS | changes


def test_missing_setting_is_refused(tmp_path):
  _run(tmp_path, SEED='1')
  with pytest.raises(ValueError, match='SEED was 1 and is now no value'):
    _run(tmp_path)


def test_without_a_checkpoint_any_settings_begin(tmp_path):
  _run(tmp_path, makes_checkpoint=False)
  _run(tmp_path, makes_checkpoint=False, RATE='0.3')
  assert _kept(tmp_path)['RATE'] == '0.3'


@pytest.mark.parametrize('error', [KeyError, KeyboardInterrupt])
def test_job_that_fails_at_once_leaves_nothing(tmp_path, error):
  folder = tmp_path / 'model'
  with pytest.raises(error):
    with kept_settings.keep(folder, _SETTINGS, _FREE):
      raise error
  assert not folder.exists()


def test_job_that_fails_at_once_leaves_other_files(tmp_path):
  (tmp_path / 'mine').write_text('')
  with pytest.raises(KeyError):
    with kept_settings.keep(tmp_path, _SETTINGS, _FREE):
      raise KeyError
  assert [path.name for path in tmp_path.iterdir()] == ['mine']


def test_job_that_fails_later_leaves_its_settings(tmp_path):
  with pytest.raises(KeyError):
    with kept_settings.keep(tmp_path, _SETTINGS, _FREE):
      (tmp_path / 'checkpoint_5').mkdir()
      raise KeyError
  assert _kept(tmp_path) == _SETTINGS


def test_another_job_at_work(tmp_path):
  with folder_lock.hold(tmp_path):
    with pytest.raises(folder_lock.FolderInUseError):
      _run(tmp_path)
  assert not (tmp_path / 'settings.json').exists()


def test_another_job_that_took_the_folder_first(tmp_path):
  """Its settings are these, and must stay."""
  with pytest.raises(folder_lock.FolderInUseError):
    with kept_settings.keep(tmp_path, _SETTINGS, _FREE):
      raise folder_lock.FolderInUseError
  assert _kept(tmp_path) == _SETTINGS


def test_damaged_file(tmp_path):
  _run(tmp_path)
  (tmp_path / 'settings.json').write_text('{')
  with pytest.raises(ValueError, match=r'settings.json is damaged .* Remove'):
    _run(tmp_path)
