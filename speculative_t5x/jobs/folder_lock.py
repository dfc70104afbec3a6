# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps a second job out of a folder that one is writing to.

The lock is the file `job.lock`, created only if there is none and removed when
the job ends. It names the process, so that one which a killed job left on this
machine is recognised and replaced. Buckets have no such creation here: two jobs
that begin in the same moment may both succeed.
"""

from collections.abc import Iterator, Mapping
import contextlib
import datetime
import json
import os
import pathlib
import platform
from typing import Any

from etils import epath

from speculative_t5x.jobs import output_folder

NAME = 'job.lock'

# What makes the number of a process unique: the name of a machine alone does
# not, for containers may share it.
_MACHINE = ('host', 'boot', 'pid_namespace')
_BOOT_ID = pathlib.Path('/proc/sys/kernel/random/boot_id')
_PID_NAMESPACE = pathlib.Path('/proc/self/ns/pid')


class FolderInUseError(OSError):
  """A folder that another job is writing to."""


@contextlib.contextmanager
def hold(path: str | os.PathLike[str]) -> Iterator[None]:
  """Makes a folder if it is missing, and keeps other jobs out meanwhile.

  A folder that was made here is removed if nothing was written to it.

  Args:
    path: of the folder; may be remote.
  Raises:
    FolderInUseError: if another job holds it, or one that may have been killed.
    OSError: if it cannot be written to.
  """
  folder = epath.Path(path)
  lock, own = folder / NAME, json.dumps(_describe())
  new = _missing(folder)
  try:
    try:
      folder.mkdir(parents=True, exist_ok=True)
      _take(lock, own)
    except FolderInUseError:
      raise
    except OSError as error:
      raise output_folder.cannot_write(folder, error) from error
    try:
      yield
    finally:
      if _read(lock) == own:
        lock.unlink(missing_ok=True)
  finally:
    with contextlib.suppress(OSError):  # it is not empty
      for each in new:
        os.rmdir(each)


def _missing(folder: epath.Path) -> list[epath.Path]:
  """The folders to be made, innermost first; buckets have none."""
  if _is_remote(folder):
    return []
  return [each for each in (folder, *folder.parents) if not each.exists()]


def _is_remote(path: epath.Path) -> bool:
  return '://' in os.fspath(path)


def _take(lock: epath.Path, own: str) -> None:
  while not _create(lock, own):
    text = _read(lock)
    if text is None:
      continue  # its job has just ended
    holder = _parse(text)
    if not _is_gone(holder):
      raise FolderInUseError(_refusal(lock, holder))
    _remove(lock, text)


def _create(lock: epath.Path, text: str) -> bool:
  """Writes the lock, and returns whether there was none."""
  if _is_remote(lock):
    if lock.exists():
      return False
    lock.write_text(text)
    return True
  try:
    with open(lock, 'x') as file:
      file.write(text)
  except FileExistsError:
    return False
  except OSError:
    lock.unlink(missing_ok=True)
    raise
  return True


def _read(lock: epath.Path) -> str | None:
  try:
    return lock.read_text()
  except FileNotFoundError:
    return None


def _remove(lock: epath.Path, text: str) -> None:
  """Removes a lock that says this, and puts back any other.

  Another job that found it may have replaced it by its own.
  """
  aside = lock.parent / f'{NAME}.{os.getpid()}'
  with contextlib.suppress(FileNotFoundError):
    lock.rename(aside)
    if aside.read_text() == text:
      aside.unlink()
    else:
      aside.rename(lock)


def _describe() -> dict[str, Any]:
  """This process, as its lock says it."""
  return {
      **_machine(),
      'pid': os.getpid(),
      'started': _started(os.getpid()),
      'since': datetime.datetime.now(datetime.UTC).isoformat(),
  }


def _machine() -> dict[str, str]:
  boot, namespace = '', ''
  with contextlib.suppress(OSError):
    boot = _BOOT_ID.read_text().strip()
    namespace = os.readlink(_PID_NAMESPACE)
  return dict(zip(_MACHINE, (platform.node(), boot, namespace), strict=True))


def _parse(text: str) -> dict[str, Any]:
  """What a lock says; nothing for one that is cut short."""
  with contextlib.suppress(ValueError):
    holder = json.loads(text)
    if isinstance(holder, dict) and isinstance(holder.get('pid'), int):
      return holder
  return {}


def _is_here(holder: Mapping[str, Any]) -> bool:
  return {key: holder.get(key) for key in _MACHINE} == _machine()


def _is_gone(holder: Mapping[str, Any]) -> bool:
  """Whether the process is one of this machine that has ended."""
  if not _is_here(holder):
    return False
  started = _started(holder['pid'])
  return started is None or bool(started) and started != holder.get('started')


def _started(pid: int) -> str | None:
  """When a process began, '' if unknown; None if there is no such process."""
  try:
    os.kill(pid, 0)
  except PermissionError:
    pass  # it is another user's
  except (ProcessLookupError, OverflowError):
    return None
  try:
    stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
  except OSError:
    return ''
  # The name of the command, in parentheses, may hold anything.
  state, *fields = stat.rpartition(')')[2].split()
  return None if state in 'ZX' else fields[18]


def _refusal(lock: epath.Path, holder: Mapping[str, Any]) -> str:
  said = f'The folder {lock.parent} is in use by another job'
  remedy = 'Wait for its end, or give another folder.'
  if holder:
    said += (
        f' (process {holder["pid"]} on {holder.get("host")}, since'
        f' {holder.get("since")})'
    )
  if not _is_here(holder):
    remedy += f' If it is no longer running, remove {lock}.'
  return f'{said}. {remedy}'
