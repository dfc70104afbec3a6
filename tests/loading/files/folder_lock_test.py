# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that one job at a time holds a folder, also after a crash."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from tests import full_disk

# Holds a folder until it is killed, where flock fails with a number if given.
_HOLD = """
import fcntl, signal, sys
def no_flock(*_):
  raise OSError(int(sys.argv[2]), 'no locks')
if sys.argv[2:]:
  fcntl.flock = no_flock
from speculative_t5x.loading.files import folder_lock
with folder_lock.hold(sys.argv[1]):
  print('held', flush=True)
  signal.pause()
"""


_BOTH = [folder_lock.NAME, folder_lock.OWNER]


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


def _check_refused(folder):
  """Return the error, and check that the lock remains."""
  before = (folder / folder_lock.NAME).read_text()
  with pytest.raises(folder_lock.FolderInUseError) as caught:
    with folder_lock.hold(folder):
      pytest.fail('a second job got in')
  assert (folder / folder_lock.NAME).read_text() == before
  assert str(caught.value).startswith(f'The folder {folder} is in use by anoth')
  return str(caught.value)


class TestHold:

  @pytest.mark.parametrize('is_remote', [False, True])
  def test_second_job_is_refused(self, tmp_path, monkeypatch, is_remote):
    monkeypatch.setattr(user_paths, 'is_remote', lambda _: is_remote)
    for error in (ValueError, KeyboardInterrupt):
      with pytest.raises(error), folder_lock.hold(tmp_path):
        message = _check_refused(tmp_path)
        assert f'(process {os.getpid()} on ' in message
        assert f'remove {tmp_path / folder_lock.NAME}.' in message
        names = [folder_lock.NAME] if is_remote else _BOTH
        assert _names(tmp_path) == names
        raise error
      assert _names(tmp_path) == []

  def test_empty_folders_are_removed(self, tmp_path):
    (tmp_path / 'a').mkdir()
    with folder_lock.hold(tmp_path / 'a' / 'b' / 'c'):
      pass
    assert _names(tmp_path) == ['a'] and _names(tmp_path / 'a') == []
    with folder_lock.hold(tmp_path / 'a' / 'b' / 'c'):
      (tmp_path / 'a' / 'b' / 'mine').write_text('')
    assert _names(tmp_path / 'a' / 'b') == ['mine']

  def test_unwritable_folder(self, tmp_path):
    (tmp_path / 'file').write_text('mine')
    with pytest.raises(OSError, match='^The output folder .* cannot be writt'):
      with folder_lock.hold(tmp_path / 'file' / 'below'):
        pytest.fail('it could')
    assert (tmp_path / 'file').read_text() == 'mine'

  def test_full_disk_leaves_no_lock(self, tmp_path):
    with full_disk.full_disk(0), pytest.raises(OSError, match='cannot be writ'):
      with folder_lock.hold(tmp_path / 'a' / 'b'):
        pytest.fail('it could')
    assert _names(tmp_path) == []

  def test_lock_that_is_removed_when_it_is_opened(self, tmp_path, monkeypatch):
    """Its job ended at that moment, so holding the file means nothing."""
    lock = tmp_path / folder_lock.NAME
    found, opened = os.open, []

    def open_and_remove(path, *args, **options):
      file = found(path, *args, **options)
      if os.fspath(path) == str(lock) and not opened:
        opened.append(lock.unlink())
      return file

    monkeypatch.setattr(os, 'open', open_and_remove)
    with folder_lock.hold(tmp_path):
      assert opened
      _check_refused(tmp_path)


def _no_flock(monkeypatch, number):
  def fail(*_):
    raise OSError(number, os.strerror(number))

  monkeypatch.setattr(fcntl, 'flock', fail)


# What file systems without locks say.
_NO_LOCKS = errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL


@pytest.mark.parametrize('numbers', [(), *((x,) for x in _NO_LOCKS)])
def test_killed_job_holds_no_lock(tmp_path, monkeypatch, numbers):
  """While the job runs, the error names it; later the lock is free."""
  for number in numbers:
    _no_flock(monkeypatch, number)
  job = subprocess.Popen(
      [sys.executable, '-c', _HOLD, tmp_path, *map(str, numbers)],
      env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
      stdout=subprocess.PIPE,
      text=True,
  )
  try:
    assert job.stdout.readline() == 'held\n'
    assert f'process {job.pid} on ' in _check_refused(tmp_path)
  finally:
    job.send_signal(signal.SIGKILL)
    job.communicate()
  assert _names(tmp_path) == _BOTH
  with folder_lock.hold(tmp_path):
    assert _names(tmp_path) == _BOTH
    assert f'(process {os.getpid()} on ' in _check_refused(tmp_path)
  assert _names(tmp_path) == []


def test_lock_of_another_machine_has_a_remedy(tmp_path, monkeypatch):
  """Without flock, nobody knows whether that process is alive."""
  _no_flock(monkeypatch, errno.ENOLCK)
  lock = tmp_path / folder_lock.NAME
  lock.write_text(f'{os.getpid()}\nanother.machine\n')
  assert _check_refused(tmp_path).endswith(f'remove {lock}.')
  lock.unlink()
  with folder_lock.hold(tmp_path):
    pass
