# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One job at a time in a folder, whatever became of the last one."""

import json
import os
import subprocess
import sys

import pytest

from speculative_t5x.jobs import folder_lock


@pytest.fixture
def left(tmp_path):
  """Leaves a lock that differs in some values from that of this process."""
  lock = tmp_path / folder_lock.NAME

  def write(**changes):
    with folder_lock.hold(tmp_path):
      holder = json.loads(lock.read_text())
    assert changes.keys() <= holder.keys()
    lock.write_text(json.dumps(holder | changes))
    return lock

  return write


def _ended():
  """The number of a process that has ended."""
  process = subprocess.Popen([sys.executable, '-c', ''])
  process.wait()
  return process.pid


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


def _check_refused(folder):
  """Returns the error, and checks that the lock stays."""
  before = (folder / folder_lock.NAME).read_text()
  with pytest.raises(folder_lock.FolderInUseError) as caught:
    with folder_lock.hold(folder):
      pytest.fail('a second job got in')
  assert _names(folder) == [folder_lock.NAME]
  assert (folder / folder_lock.NAME).read_text() == before
  assert str(caught.value).startswith(f'The folder {folder} is in use by anoth')
  return str(caught.value)


class TestHold:

  @pytest.mark.parametrize('is_remote', [False, True])
  def test_a_second_job_is_refused(self, tmp_path, monkeypatch, is_remote):
    monkeypatch.setattr(folder_lock, '_is_remote', lambda _: is_remote)
    with folder_lock.hold(tmp_path):
      error = _check_refused(tmp_path)
    assert f'(process {os.getpid()} on ' in error
    assert error.endswith('. Wait for its end, or give another folder.')
    assert _names(tmp_path) == []
    with folder_lock.hold(tmp_path):
      assert _names(tmp_path) == [folder_lock.NAME]

  @pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt])
  def test_ends_with_an_error(self, tmp_path, error):
    with pytest.raises(error), folder_lock.hold(tmp_path):
      raise error
    assert _names(tmp_path) == []

  def test_folders_without_anything_in_them_are_removed(self, tmp_path):
    (tmp_path / 'a').mkdir()
    with folder_lock.hold(tmp_path / 'a' / 'b' / 'c'):
      pass
    assert _names(tmp_path) == ['a'] and _names(tmp_path / 'a') == []
    with folder_lock.hold(tmp_path / 'a' / 'b' / 'c'):
      (tmp_path / 'a' / 'b' / 'mine').write_text('')
    assert _names(tmp_path / 'a' / 'b') == ['mine']

  @pytest.mark.parametrize('path', ['file', 'file/below'])
  def test_cannot_be_written(self, tmp_path, path):
    (tmp_path / 'file').write_text('mine')
    with pytest.raises(OSError, match='^The output folder .* cannot be writt'):
      with folder_lock.hold(tmp_path / path):
        pytest.fail('it could')
    assert (tmp_path / 'file').read_text() == 'mine'

  def test_another_jobs_lock_stays(self, tmp_path):
    """One that came after this job's had been removed by hand."""
    with folder_lock.hold(tmp_path):
      (tmp_path / folder_lock.NAME).write_text('of another job')
    assert _names(tmp_path) == [folder_lock.NAME]


class TestLockOfAKilledJob:

  @pytest.mark.parametrize(
      'changes',
      [lambda: {'pid': _ended()}, lambda: {'started': '1'}],
      ids=['ended', 'its number is of another process'],
  )
  def test_on_this_machine_is_replaced(self, left, tmp_path, changes):
    lock = left(**changes())
    with folder_lock.hold(tmp_path):
      assert json.loads(lock.read_text())['pid'] == os.getpid()
      assert _names(tmp_path) == [folder_lock.NAME]
    assert _names(tmp_path) == []

  @pytest.mark.parametrize('key', ['host', 'boot', 'pid_namespace'])
  def test_on_another_machine_is_named(self, left, tmp_path, key):
    lock = left(pid=_ended(), **{key: 'other'})
    error = _check_refused(tmp_path)
    assert error.endswith(f' If it is no longer running, remove {lock}.')

  @pytest.mark.parametrize('text', ['', '{"pid": 1', '[]', '{"pid": "1"}'])
  def test_cut_short_is_named(self, tmp_path, text):
    lock = tmp_path / folder_lock.NAME
    lock.write_text(text)
    assert _check_refused(tmp_path).endswith(f' remove {lock}.')

  def test_of_another_user(self, left, tmp_path, monkeypatch):
    """Whose processes may be hidden."""

    def refuse(*_):
      raise PermissionError

    left(pid=_ended())
    monkeypatch.setattr(os, 'kill', refuse)
    assert 'remove' not in _check_refused(tmp_path)

  def test_that_another_job_replaced_meanwhile(
      self, left, tmp_path, monkeypatch
  ):
    """Both found the one that was left; the other was faster."""
    stale = left(pid=_ended()).read_text()
    (tmp_path / folder_lock.NAME).unlink()
    live = left(since='later').read_text()
    reads = iter([stale])
    read = folder_lock._read
    monkeypatch.setattr(
        folder_lock, '_read', lambda lock: next(reads, None) or read(lock)
    )
    assert 'since later' in _check_refused(tmp_path)
    assert (tmp_path / folder_lock.NAME).read_text() == live
