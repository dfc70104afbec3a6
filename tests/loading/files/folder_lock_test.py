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


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


def _check_refused(folder):
  with pytest.raises(folder_lock.FolderInUseError) as caught:
    with folder_lock.hold(folder):
      pytest.fail('a second job got in')
  for named in (folder, folder / folder_lock.NAME):
    assert str(named) in str(caught.value)
  assert _names(folder) == [folder_lock.NAME]


@pytest.mark.parametrize('is_remote', [False, True])
def test_second_job_is_refused(tmp_path, monkeypatch, is_remote):
  monkeypatch.setattr(user_paths, 'is_remote', lambda _: is_remote)
  for error in (ValueError, KeyboardInterrupt):
    with pytest.raises(error), folder_lock.hold(tmp_path):
      _check_refused(tmp_path)
      raise error
    assert _names(tmp_path) == []


def test_empty_folders_are_removed(tmp_path):
  (tmp_path / 'a').mkdir()
  with folder_lock.hold(tmp_path / 'a' / 'b' / 'c'):
    pass
  assert _names(tmp_path) == ['a'] and _names(tmp_path / 'a') == []
  with folder_lock.hold(tmp_path / 'a' / 'b' / 'c'):
    (tmp_path / 'a' / 'b' / 'mine').write_text('')
  assert _names(tmp_path / 'a' / 'b') == ['mine']


def test_unwritable_folder(tmp_path):
  (tmp_path / 'file').write_text('mine')
  with pytest.raises(OSError, match='^The output folder '):
    with folder_lock.hold(tmp_path / 'file' / 'below'):
      pytest.fail('it could')
  assert (tmp_path / 'file').read_text() == 'mine'


def test_lock_that_is_removed_when_it_is_opened(tmp_path, monkeypatch):
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
    _check_refused(tmp_path)
  finally:
    job.send_signal(signal.SIGKILL)
    job.communicate()
  assert _names(tmp_path) == [folder_lock.NAME]
  with folder_lock.hold(tmp_path):
    _check_refused(tmp_path)
  assert _names(tmp_path) == []
